/* SPDX-License-Identifier: Apache-2.0 */
/* Options that several commands share, and the one way to report an error. */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

static bool nic_word_valid(const char *word)
{
	return strcmp(word, "soft") == 0 || strcmp(word, "hw") == 0 ||
	       strcmp(word, "auto") == 0;
}

/* One option; false when the arguments are wrong (and stderr says so). */
static bool take_option(const struct cli_command *self, int opt, char **argv,
			unsigned accept, struct cli_args *args)
{
	switch (opt) {
	case 'j':
		args->json = true;
		return true;
	case 'n':
		if (!(accept & CLI_ACCEPT_NIC)) {
			cli_error("%s takes no --nic", self->name);
			return false;
		}
		if (!nic_word_valid(optarg)) {
			cli_error("--nic is soft, hw or auto, not '%s'",
				  optarg);
			return false;
		}
		args->nic = optarg;
		return true;
	case 'f':
		if (!(accept & CLI_ACCEPT_FACADE)) {
			cli_error("%s takes no --facade", self->name);
			return false;
		}
		args->facade_off = strcmp(optarg, "off") == 0;
		if (!args->facade_off && strcmp(optarg, "auto") != 0) {
			cli_error("--facade is auto or off, not '%s'", optarg);
			return false;
		}
		return true;
	case ':':
		cli_error("%s needs a value", argv[optind - 1]);
		return false;
	default:
		cli_error("%s has no option '%s'; see 'aquifer help %s'",
			  self->name, argv[optind - 1], self->name);
		return false;
	}
}

int cli_args_parse(const struct cli_command *self, int argc, char **argv,
		   unsigned accept, struct cli_args *out)
{
	static const struct option longopts[] = {
		{"facade", required_argument, NULL, 'f'},
		{"help", no_argument, NULL, 'h'},
		{"json", no_argument, NULL, 'j'},
		{"nic", required_argument, NULL, 'n'},
		{NULL, 0, NULL, 0},
	};
	struct cli_args args = {0};
	int opt;

	/* 0, not 1: glibc then forgets a scan of another argv. */
	optind = 0;
	while ((opt = getopt_long(argc, argv, "+:h", longopts, NULL)) != -1) {
		if (opt == 'h') {
			cli_command_help(self, "aquifer");
			return CLI_OK;
		}
		if (!take_option(self, opt, argv, accept, &args))
			return CLI_USAGE;
	}
	args.rest = argv + optind;
	args.rest_count = argc - optind;
	if (args.rest_count && !(accept & CLI_ACCEPT_REST)) {
		cli_error("%s does not understand '%s'; see 'aquifer help %s'",
			  self->name, args.rest[0], self->name);
		return CLI_USAGE;
	}
	*out = args;
	return CLI_GO;
}
