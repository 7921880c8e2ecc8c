/* SPDX-License-Identifier: Apache-2.0 */
/* What commands that are daemons share: rows of options, and the exit code. */
#ifndef AQ_CLI_DAEMON_H
#define AQ_CLI_DAEMON_H

#include <jansson.h>

#include "cli.h"
#include "daemon/daemon.h"

/* What the struct of a daemon's options begins with. */
struct cli_daemon {
	struct daemon daemon;
	bool json;
};

/* Rows about a struct `args` that has a struct cli_daemon `base`. */
#define CLI_DAEMON_NAME(args, help) \
	OPT_TEXT(args, base.daemon.options.name, "name", "NAME", help)

#define CLI_DAEMON_HTTP(args)                                                  \
	OPT_TEXT(args, base.daemon.options.listen, "listen", "ADDRESS:PORT",   \
		 "serve HTTP here too, beside the unix socket"),               \
		OPT_TEXT(args, base.daemon.options.tls_cert, "tls-cert",       \
			 "FILE", "with TLS: a PEM file"),                      \
		OPT_TEXT(args, base.daemon.options.tls_key, "tls-key", "FILE", \
			 "and its key"),                                       \
		OPT_TEXT(args, base.daemon.options.tls_ca, "tls-ca", "FILE",   \
			 "callers need a certificate of this authority"),      \
		OPT_FLAG(args, base.daemon.options.is_insecure, "insecure",    \
			 "listen without TLS also where others can connect"),  \
		OPT_TEXT(args, base.daemon.options.audit, "audit", "FILE",     \
			 "a line for each change and each refusal; -: "        \
			 "stderr"),                                            \
		OPT_FLAG(args, base.daemon.options.audit_json, "audit-json",   \
			 "these lines as JSON objects")

#define CLI_DAEMON_CONFINE(args)                                    \
	OPT_TEXT(args, base.daemon.options.user, "user", "NAME",    \
		 "as root: become this user first"),                \
		OPT_FLAG(args, base.daemon.options.is_unconfined,   \
			 "no-confine",                              \
			 "keep privileges, files and system calls " \
			 "(debugging)")

#define CLI_DAEMON_JSON(args, help) OPT_FLAG(args, base.json, "json", help)

/* The checks that all daemons share: CLI_GO, or an exit code. */
int cli_daemon_check(const struct cli_daemon *args) MUST_CHECK;
/* cli_parse, and those checks. */
int cli_daemon_parse(const struct cli_command *self, int argc, char **argv,
		     struct cli_daemon *args) MUST_CHECK;

/* Prints one line for people and scripts, or `tree`, which it takes over. From
 * then on clients can connect. */
void cli_daemon_ready(const struct daemon *d, json_t *tree, const char *fmt,
		      ...) PRINTF(3, 4);

/* Runs the daemon until it ends; returns the exit code. */
int cli_daemon_run(struct cli_daemon *args, const struct daemon_kind *kind,
		   void *self, void (*ready)(struct daemon *d)) MUST_CHECK;

#endif
