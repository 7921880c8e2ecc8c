/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer`: global options, then the command table. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/complaint.h"
#include "base/config.h"
#include "cli.h"

/* Through the environment, because programs under exec shall see it too. */
static int set_environment(const char *config, int verbose, bool as_json)
{
	const char *level = verbose > 1 ? "debug" : "info";

	if (config && (setenv("AQUIFER_CONFIG", config, 1) != 0 ||
		       unsetenv(CONFIG_RACK_VARIABLE) != 0))
		return -errno;
	if (verbose && setenv("AQUIFER_LOG", level, 1) != 0)
		return -errno;
	if (as_json && setenv("AQUIFER_LOG_JSON", "1", 1) != 0)
		return -errno;
	return 0;
}

static int refuse(const char *word, int opt)
{
	if (opt == ':')
		cli_error("%s needs a value; see 'aquifer help'", word);
	else
		cli_error("unknown option '%s'; 'aquifer help' lists those "
			  "that stand before the command",
			  word);
	return CLI_USAGE;
}

static int run_command(int argc, char **argv)
{
	static const struct option longopts[] = {
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{"verbose", no_argument, NULL, 'v'},
		{"log-json", no_argument, NULL, 'L'},
		{"config", required_argument, NULL, 'c'},
		{"rack", required_argument, NULL, 'r'},
		{NULL, 0, NULL, 0},
	};
	char *help[] = {(char[]){"help"}, NULL};
	char *version[] = {(char[]){"version"}, NULL};
	const char *config = NULL, *rack = NULL;
	bool log_json = false;
	int opt, code, verbose = 0;

	complaint_set_json(cli_words_ask_json(argc, argv));
	while ((opt = getopt_long(argc, argv, "+:hvV", longopts, NULL)) != -1) {
		switch (opt) {
		case 'h':
			return cli_dispatch(cli_commands, "aquifer", 1, help);
		case 'V':
			return cli_dispatch(cli_commands, "aquifer", 1,
					    version);
		case 'v':
			verbose++;
			break;
		case 'L':
			log_json = true;
			break;
		case 'c':
			config = optarg;
			break;
		case 'r':
			rack = optarg;
			break;
		default:
			return refuse(argv[optind - 1], opt);
		}
	}
	if (set_environment(config, verbose, log_json) != 0) {
		cli_error("cannot set the environment: %s", strerror(errno));
		return CLI_FAILED;
	}
	code = rack ? cli_rack_choose(rack) : CLI_GO;
	if (code != CLI_GO)
		return code;
	if (optind == argc) {
		cli_error("no command given; 'aquifer help' lists them");
		return CLI_USAGE;
	}
	return cli_dispatch(cli_commands, "aquifer", argc - optind,
			    argv + optind);
}

int main(int argc, char **argv)
{
	return cli_flush(run_command(argc, argv));
}
