/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a daemon, the same for all of them: settings, its user and what
 * it gives up, signals, the lock on its name, audit log, HTTP, the notice that
 * it is ready, and a clean end.
 *
 * How to write a new daemon:
 *  1. fill in a struct daemon_kind. `open` makes what is served, from the
 *     options in d->self and the settings in d->config; `run` works until
 *     daemon_is_ending says so (d->signal_fd is readable then); `close` undoes
 *     `open`, also one that failed half way;
 *  2. name in `allow` the files that it needs beside those that all need. No
 *     thread may be started before `open`;
 *  3. write src/apps/cli/cmd_NAME.c with the rows of cli_daemon.h in its table
 *     of options, and a `ready` that says where the daemon can be reached;
 *  4. write dist/systemd/aquifer-NAME@.service.in with Type=notify.
 *
 * SIGHUP makes it read its certificates again and open its audit log anew, for
 * which daemon_is_ending has to be called now and then.
 *
 * What happens, in this order: settings; user and directories; `allow`;
 * confinement; signals are blocked; name and lock; audit log; `open`; HTTP;
 * `ready` and the notice to systemd; `run`; and all of it back.
 */
#ifndef AQ_DAEMON_H
#define AQ_DAEMON_H

#include "base/base.h"
#include "base/config.h"
#include "base/rack_token.h"
#include "base/rundir.h"
#include "confine/confine.h"
#include "control/ctl_server.h"

enum {
	DAEMON_PATH_MAX = 400, /* with the NUL */
	DAEMON_ADDRESS_MAX = 256,
};

struct ctl_audit;
struct daemon;
struct env_ops;

/* What a command line says about any daemon. NULL: not given. */
struct daemon_options {
	const char *name; /* in its rack; 1 to 32 of a-z, 0-9 and '-' */
	const char *rack; /* as configured */
	const char *listen;
	const char *tls_cert;
	const char *tls_key;
	const char *tls_ca; /* callers need a certificate of it */
	bool is_insecure;   /* no TLS where others reach it */
	const char *audit;  /* a file, "-", or NULL: the log */
	bool audit_json;
	const char *user; /* to become, as root */
	bool is_unconfined;
};

struct daemon_kind {
	const char *what; /* "a memory node", for people */
	/* Stands between its name and ".sock" or ".lock" in the runtime
	 * directory; NULL: it has neither, and guards its name itself. */
	const char *suffix;
	/* It remembers the last lines of its audit log, which is a file of the
	 * state directory where --audit names none. */
	bool keeps_audit;
	/* Of HTTP requests, where there is a socket or an address to listen on;
	 * NULL: none. */
	ctl_handle_fn handle;
	/* As in struct ctl_server_config; all may be NULL. */
	ctl_quick_fn quick;
	const struct ctl_routes *routes;
	void (*gone)(void *served, uint64_t id);
	/* Each 0, or -errno with words. `allow` adds to d->confine, and may be
	 * NULL. */
	int (*allow)(struct daemon *d);
	int (*open)(struct daemon *d);
	int (*run)(struct daemon *d);
	int (*close)(struct daemon *d);
};

struct daemon {
	/* Set by the caller. */
	struct daemon_options options;
	const struct daemon_kind *kind;
	void *self;			 /* the kind's own */
	void (*ready)(struct daemon *d); /* it can be reached now */
	struct confine confine; /* packets, low_port: capabilities to keep */
	/* Valid while it lives. */
	struct config *config;
	const char *rack;
	char rundir[RUNDIR_PATH_MAX];
	/* Of HTTP; a kind without a suffix may name one in `allow`. */
	char socket[DAEMON_PATH_MAX];
	struct ctl_audit *audit;
	void *served;  /* what `open` made: the first argument of `handle` */
	uint16_t port; /* of HTTP; 0: none */
	/* From `ready` until `run` has returned; NULL: there is no HTTP. */
	struct ctl_server *server;
	int signal_fd; /* readable: daemon_is_ending would be true */
	int signal;    /* that ended it, or 0 */
	/* For this room only. */
	int lock_fd;
	int notify_fd;
};

/* Lives until SIGTERM or SIGINT, which it takes for the whole process, or until
 * `run` returns. -EBUSY: one of that name runs already. error_last() has the
 * words. */
int daemon_run(struct daemon *d) MUST_CHECK;

/* For `allow` of a kind that has tokens: the state directory, which is made,
 * and may be mounted anew while the daemon runs. */
int daemon_allow_state(struct daemon *d) MUST_CHECK;
/* The token of that kind, which is made where there is none. */
int daemon_token(const struct daemon *d, enum rack_token_kind kind,
		 char text[SECRET_TEXT]) MUST_CHECK;
/* The one that there is; -ENOENT and others as rack_token_find. */
int daemon_token_find(const struct daemon *d, enum rack_token_kind kind,
		      char text[SECRET_TEXT]) MUST_CHECK;
/* From now on it is another one. */
int daemon_token_keep(const struct daemon *d, enum rack_token_kind kind,
		      const char *text) MUST_CHECK;

/* Where others reach it: its TCP address as an URL, or unix:PATH. */
void daemon_address(const struct daemon *d, char out[DAEMON_ADDRESS_MAX]);

/* Clock, randomness and relax for the core of a daemon. */
extern const struct env_ops daemon_env_ops;

/* Waits for a signal for this long; returns whether one has come that ends the
 * daemon. */
bool daemon_is_ending(struct daemon *d, int wait_ms);

#endif
