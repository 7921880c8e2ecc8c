/* SPDX-License-Identifier: Apache-2.0 */
/* What went wrong, and the exit code that says whose fault it is. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/complaint.h"
#include "base/error.h"
#include "cli.h"

enum {
	MESSAGE_BYTES = 1024,
};

void cli_error(const char *fmt, ...)
{
	char text[MESSAGE_BYTES];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	complain(0, "%s", text);
}

void cli_error_last(int err)
{
	const char *words = error_last_code() == err ? error_last() : "";

	if (!words[0])
		complain(err, "%s", error_text(err));
	else if (complaint_is_json() || cli_error_exit(err) == CLI_USAGE)
		complain(err, "%s", words);
	else
		complain(err, "%s (%s)", words, error_text(err));
}

int cli_error_exit(int err)
{
	switch (err) {
	case 0:
		return CLI_OK;
	case -EINVAL:
	case -ENAMETOOLONG:
	case -ERANGE:
		return CLI_USAGE;
	default:
		return CLI_FAILED;
	}
}

bool cli_words_ask_json(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--json") == 0)
			return true;
	return false;
}

int cli_output_check(void)
{
	if (!ferror(stdout))
		return 0;
	return error_set(-EIO, "the output cannot be written: %s",
			 strerror(errno));
}

int cli_flush(int code)
{
	if (fflush(stdout) != 0 || ferror(stdout)) {
		cli_error("cannot write the output: %s", strerror(errno));
		code = code == CLI_OK ? CLI_FAILED : code;
	}
	complaint_flush(code);
	return code;
}
