/* SPDX-License-Identifier: Apache-2.0 */
/* From the command line to the clean end. */
#include "daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/statedir.h"
#include "control/ctl_audit.h"
#include "daemon_priv.h"

/* ---- settings ----------------------------------------------------------- */

static int settle(struct daemon *d)
{
	const struct daemon_options *o = &d->options;
	int err;

	if (d->kind->suffix && !rundir_rack_is_valid(o->name))
		return error_set(-EINVAL,
				 "%s's name is 1 to %d of a-z, 0-9 and '-', "
				 "not '%.40s'",
				 d->kind->what, RUNDIR_RACK_MAX, o->name);
	/* The NIC in this process finds its rack where every program does. */
	if (o->rack && setenv("AQUIFER_RACK_NAME", o->rack, 1) != 0)
		return error_set(-ENOMEM, "cannot set the environment");
	err = config_open(NULL, &d->config);
	if (!err)
		d->rack = config_string(d->config, "rack", "name");
	return err;
}

/* ---- signals ------------------------------------------------------------ */

/* Before any thread exists, so that none but the first gets them. A client that
 * hangs up must not end the daemon either. */
static int take_signals(struct daemon *d)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0 ||
	    signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return error_set(-EINVAL, "cannot set up signals");
	d->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return d->signal_fd < 0
		       ? error_set(-errno, "signals: %s", strerror(errno))
		       : 0;
}

/* What is wrong leaves it as it was: a daemon with an old certificate is better
 * than none. */
static void reload(struct daemon *d)
{
	int err = d->audit ? ctl_audit_reopen(d->audit) : 0;

	if (err)
		log_warn("daemon", "SIGHUP: %s", error_last());
	err = d->server ? ctl_server_reload(d->server) : 0;
	if (err)
		log_warn("daemon", "SIGHUP: the former certificate stays: %s",
			 error_last());
	else
		log_info("daemon", "SIGHUP: certificates and audit log are "
				   "read and opened again");
}

bool daemon_is_ending(struct daemon *d, int wait_ms)
{
	struct pollfd p = {.fd = d->signal_fd, .events = POLLIN};
	struct signalfd_siginfo info;

	if (!d->signal && wait_ms)
		(void)poll(&p, 1, wait_ms); /* reading tells */
	while (!d->signal &&
	       read(d->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGHUP)
			reload(d);
		else
			d->signal = (int)info.ssi_signo;
	}
	return d->signal != 0;
}

/* ---- the name ----------------------------------------------------------- */

/* Somebody else has it; its number is in the file. */
static int name_is_taken(const struct daemon *d, int fd)
{
	char pid[32] = {0};
	ssize_t n = read(fd, pid, sizeof(pid) - 1);

	pid[n > 0 ? strspn(pid, "0123456789") : 0] = '\0';
	return error_set(-EBUSY,
			 "%s %s of rack %s runs already (process %s); choose "
			 "another --name",
			 d->kind->what, d->options.name, d->rack,
			 *pid ? pid : "unknown");
}

/* The name is ours until the process ends, however it ends. */
static int take_name(struct daemon *d)
{
	char path[DAEMON_PATH_MAX], pid[32];
	const char *name = d->options.name, *suffix = d->kind->suffix;
	int n, err = rundir_make(d->rack, d->rundir);

	if (err || !suffix)
		return err;
	(void)snprintf(d->socket, sizeof(d->socket), "%s/%s%s.sock", d->rundir,
		       name, suffix);
	(void)snprintf(path, sizeof(path), "%s/%s%s.lock", d->rundir, name,
		       suffix);
	d->lock_fd = rundir_file_open(path, O_RDWR | O_CREAT);
	if (d->lock_fd < 0)
		return d->lock_fd;
	if (flock(d->lock_fd, LOCK_EX | LOCK_NB) != 0)
		return errno == EWOULDBLOCK
			       ? name_is_taken(d, d->lock_fd)
			       : error_set(-errno, "cannot lock %s: %s", path,
					   strerror(errno));
	/* Only for the words above: the lock itself is what counts. */
	n = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
	if (ftruncate(d->lock_fd, 0) < 0 || pwrite(d->lock_fd, pid, n, 0) != n)
		return error_set(-EIO, "cannot write %s", path);
	return 0;
}

static int open_audit(struct daemon *d)
{
	const struct daemon_options *o = &d->options;
	bool is_own = d->kind->keeps_audit && !o->audit;
	char dir[STATEDIR_PATH_MAX], path[STATEDIR_PATH_MAX + 64];
	int err = is_own ? statedir_make(d->rack, dir) : 0;

	if (err)
		return err;
	if (is_own)
		(void)snprintf(path, sizeof(path), "%s/%.32s.audit.jsonl", dir,
			       o->name);
	err = ctl_audit_open(is_own ? path : o->audit, is_own || o->audit_json,
			     &d->audit);
	if (!err && d->kind->keeps_audit)
		err = ctl_audit_keep(d->audit, is_own);
	return err;
}

/* ---- life --------------------------------------------------------------- */

static int live(struct daemon *d)
{
	int err;

	d->ready(d);
	notify_send(d->notify_fd, "READY=1");
	err = d->kind->run(d);
	notify_send(d->notify_fd, "STOPPING=1");
	log_info("daemon", "%s%s%s ends: %s", d->kind->what,
		 d->options.name ? " " : "",
		 d->options.name ? d->options.name : "",
		 d->signal ? strsignal(d->signal) : "its work is done");
	return err;
}

static int serve(struct daemon *d)
{
	const struct daemon_options *o = &d->options;
	struct ctl_server_config http = {
		.unix_path = d->socket[0] ? d->socket : NULL,
		.listen = o->listen,
		.tls_cert = o->tls_cert,
		.tls_key = o->tls_key,
		.tls_ca = o->tls_ca,
		.is_insecure = o->is_insecure,
		.handle = d->kind->handle,
		.quick = d->kind->quick,
		.ctx = d->served,
		.routes = d->kind->routes,
		.gone = d->kind->gone,
	};
	int err;

	if (!http.handle || (!http.unix_path && !http.listen))
		return live(d);
	err = ctl_server_start(&http, &d->server);
	if (err)
		return err;
	d->port = ctl_server_port(d->server);
	err = live(d);
	ctl_server_stop(d->server);
	d->server = NULL;
	return err;
}

static int open_and_serve(struct daemon *d)
{
	int close_err, err = settle(d);

	if (!err)
		err = drop_rights(d);
	if (!err)
		err = take_signals(d);
	if (!err)
		err = take_name(d);
	if (!err && d->kind->handle)
		err = open_audit(d);
	if (err)
		return err;
	err = d->kind->open(d);
	if (!err)
		err = serve(d);
	close_err = d->kind->close(d);
	return err ? err : close_err;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		(void)close(fd); /* nothing was written that could be lost */
}

int daemon_run(struct daemon *d)
{
	int err;

	log_show_time();
	d->signal_fd = d->lock_fd = -1;
	d->notify_fd = notify_open();
	err = open_and_serve(d);
	ctl_audit_close(d->audit);
	close_fd(d->lock_fd); /* gives the name back */
	close_fd(d->signal_fd);
	close_fd(d->notify_fd);
	config_destroy(d->config);
	d->config = NULL;
	return err;
}
