/* SPDX-License-Identifier: Apache-2.0 */
/* From options to a daemon, and its word that it is ready. */
#include "cli_daemon.h"

#include <stdarg.h>
#include <stdio.h>

#include "cli_report.h"

int cli_daemon_check(const struct cli_daemon *args)
{
	const struct daemon_options *o = &args->daemon.options;

	if ((o->tls_cert || o->tls_key) && !o->listen) {
		cli_error("--tls-cert and --tls-key go with --listen");
		return CLI_USAGE;
	}
	if (o->tls_ca && !o->tls_cert) {
		cli_error("--tls-ca goes with --tls-cert");
		return CLI_USAGE;
	}
	return CLI_GO;
}

int cli_daemon_parse(const struct cli_command *self, int argc, char **argv,
		     struct cli_daemon *args)
{
	int code = cli_parse(self, argc, argv, OPT_WORDS_NONE, args, NULL);

	return code == CLI_GO ? cli_daemon_check(args) : code;
}

void cli_daemon_ready(const struct daemon *d, json_t *tree, const char *fmt,
		      ...)
{
	const struct daemon_options *o = &d->options;
	va_list ap;

	if (container_of(d, struct cli_daemon, daemon)->json) {
		if (cli_report_print(tree, true) != 0)
			cli_error("cannot write the output");
	} else {
		va_start(ap, fmt);
		(void)vprintf(fmt, ap);
		va_end(ap);
		if (o->listen)
			printf("listening on %s (port %u)%s\n", o->listen,
			       d->port, o->tls_cert ? " with TLS" : "");
		json_decref(tree);
	}
	(void)fflush(stdout); /* main reports a failure at the end */
}

int cli_daemon_run(struct cli_daemon *args, const struct daemon_kind *kind,
		   void *self, void (*ready)(struct daemon *d))
{
	struct config *config;
	int err = config_open(NULL, &config);

	/* A rack.ini that is wrong is no wrong argument. */
	if (err) {
		cli_error_last(err);
		return CLI_FAILED;
	}
	config_destroy(config);
	args->daemon.kind = kind;
	args->daemon.self = self;
	args->daemon.ready = ready;
	err = daemon_run(&args->daemon);
	if (err)
		cli_error_last(err);
	return cli_error_exit(err);
}
