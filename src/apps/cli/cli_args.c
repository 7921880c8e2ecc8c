/* SPDX-License-Identifier: Apache-2.0 */
/* How commands read their options, and the one way to report an error. */
#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "cli.h"

void cli_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("aquifer: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
}

int cli_flush(int code)
{
	if (fflush(stdout) != 0 || ferror(stdout)) {
		perror("aquifer: cannot write the output");
		return code == CLI_OK ? CLI_FAILED : code;
	}
	return code;
}

void cli_error_last(int err)
{
	cli_error("%s",
		  error_last_code() == err ? error_last() : error_text(err));
}

int cli_parse(const struct cli_command *self, int argc, char **argv,
	      enum opt_words accept, void *args, struct cli_words *words)
{
	int first;

	switch (opt_parse(self->options, self->name, argc, argv, accept, args,
			  &first)) {
	case OPT_HELP:
		cli_command_help(self, "aquifer");
		return CLI_OK;
	case OPT_WRONG:
		cli_error("%s", error_last());
		return CLI_USAGE;
	case OPT_DONE:
		break;
	}
	if (words)
		*words = (struct cli_words){argc - first, argv + first};
	return CLI_GO;
}

int cli_parse_size(const char *what, const char *word, uint64_t *bytes)
{
	int err = opt_size(what, word, bytes);

	if (err)
		cli_error("%s", error_last());
	return err;
}
