/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control calls on a unix socket in the runtime directory: one line in, one
 * JSON object out, the end. The thread that moves frames answers, between two
 * batches, so a program's tables change between two packets.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ask.h"
#include "base/error.h"
#include "base/json_out.h"
#include "base/rundir.h"
#include "switchd_priv.h"

enum {
	REPLY_MS = 200, /* a caller that does not read gets no more */
	ASK_MS = 5000,
};

int control_path(const char *rack, const char *name, struct sockaddr_un *sa)
{
	char dir[RUNDIR_PATH_MAX];
	int err = rundir_make(rack, dir);

	if (err)
		return err;
	*sa = (struct sockaddr_un){.sun_family = AF_UNIX};
	/* Not .sock: those are nodes that speak HTTP. */
	if ((size_t)snprintf(sa->sun_path, sizeof(sa->sun_path),
			     "%s/switch-%s.ctl", dir,
			     name) >= sizeof(sa->sun_path))
		return error_set(-ENAMETOOLONG,
				 "the runtime directory's name is too long");
	return 0;
}

/* ---- the switch's side -------------------------------------------------- */

static int answer(struct switchd *s, const char *line, struct json_out *out)
{
	if (strcmp(line, "hello") == 0) {
		json_out_array(out, "addresses");
		for (unsigned i = 0; i < s->opt->address_count; i++)
			json_out_string(out, NULL, s->opt->addresses[i]);
		json_out_close(out);
		tor_report_programs(s->tor, out);
		return 0;
	}
	if (strcmp(line, "stats") == 0) {
		tor_report(s->tor, out);
		return 0;
	}
	if (strcmp(line, "resources") == 0) {
		tor_report_resources(s->tor, out);
		return 0;
	}
	if (strncmp(line, "tell ", 5) == 0) {
		int err;

		trace_tell(s->trace, line + 5);
		err = tor_control(s->tor, line + 5, out);
		trace_result(s->trace, err);
		return err;
	}
	return error_set(-EINVAL,
			 "a switch understands hello, stats, resources and "
			 "tell");
}

static void send_all(int fd, const char *text, size_t len)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};

	while (len) {
		ssize_t n = send(fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && (errno != EAGAIN || poll(&p, 1, REPLY_MS) <= 0))
			return;
		if (n > 0) {
			text += n;
			len -= (size_t)n;
		}
	}
}

static void reply(struct switchd *s, int fd, const char *line)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	struct json_out out;
	int err;

	if (!f)
		return;
	json_out_init(&out, f);
	json_out_object(&out, NULL);
	json_out_string(&out, "switch", s->daemon->options.name);
	json_out_string(&out, "run", s->run);
	err = answer(s, line, &out);
	if (err)
		json_out_string(&out, "error",
				error_last_code() == err ? error_last()
							 : error_text(err));
	json_out_close(&out);
	err = json_out_end(&out);
	if (fclose(f) == 0 && !err)
		send_all(fd, text, len);
	free(text);
}

static void hang_up(struct switchd *s, unsigned i)
{
	os_board_unwatch(s->board, s->clients[i]);
	close(s->clients[i]);
	s->clients[i] = -1;
}

/* Who may declare may cut others off: only who could have started us. */
static bool may_call(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	       (peer.uid == 0 || peer.uid == geteuid());
}

static void accept_one(struct switchd *s)
{
	int fd = accept4(s->ctl_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	unsigned i = 0;

	if (fd < 0)
		return;
	if (!may_call(fd)) {
		close(fd);
		return;
	}
	while (i < CTL_CLIENTS && s->clients[i] >= 0)
		i++;
	/* All busy: the one that has said nothing longest makes room. */
	if (i == CTL_CLIENTS) {
		hang_up(s, 0);
		memmove(s->clients, s->clients + 1,
			(CTL_CLIENTS - 1) * sizeof(s->clients[0]));
		i = CTL_CLIENTS - 1;
	}
	s->clients[i] = fd;
	if (os_board_watch(s->board, fd)) {
		close(fd);
		s->clients[i] = -1;
	}
}

/* A line comes in one piece, because it is short and sent at once. */
static void serve(struct switchd *s, unsigned i)
{
	char line[SWITCHD_REQUEST_MAX];
	ssize_t n = recv(s->clients[i], line, sizeof(line) - 1, MSG_DONTWAIT);

	if (n > 0) {
		line[n] = '\0';
		line[strcspn(line, "\n")] = '\0';
		reply(s, s->clients[i], line);
	}
	hang_up(s, i);
}

bool control_event(struct switchd *s, int fd)
{
	if (fd == s->ctl_fd) {
		accept_one(s);
		return true;
	}
	for (unsigned i = 0; i < CTL_CLIENTS; i++) {
		if (s->clients[i] != fd)
			continue;
		serve(s, i);
		return true;
	}
	return false;
}

int control_open(struct switchd *s)
{
	struct sockaddr_un sa;
	mode_t old;
	int err;

	for (unsigned i = 0; i < CTL_CLIENTS; i++)
		s->clients[i] = -1;
	err = control_path(s->daemon->rack, s->daemon->options.name, &sa);
	if (err)
		return err;
	s->ctl_fd =
		socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->ctl_fd < 0)
		return -errno;
	/* The board has the switch's name already, so a socket that is there
	 * was left by one that was killed. */
	(void)unlink(sa.sun_path);
	old = umask(077);
	err = bind(s->ctl_fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 ||
			      listen(s->ctl_fd, CTL_CLIENTS) < 0
		      ? -errno
		      : 0;
	umask(old);
	if (err)
		return error_set(err, "%s: %s", sa.sun_path, strerror(-err));
	memcpy(s->ctl_path, sa.sun_path, sizeof(sa.sun_path));
	return os_board_watch(s->board, s->ctl_fd);
}

void control_close(struct switchd *s)
{
	for (unsigned i = 0; i < CTL_CLIENTS; i++)
		if (s->clients[i] >= 0)
			close(s->clients[i]);
	if (s->ctl_fd >= 0)
		close(s->ctl_fd);
	if (s->ctl_path[0])
		(void)unlink(s->ctl_path);
}

const char *switchd_socket(const struct daemon *d)
{
	return ((const struct switchd *)d->served)->ctl_path;
}

/* ---- the caller's side -------------------------------------------------- */

int switchd_ask(const char *rack, const char *name, const char *line, FILE *out)
{
	struct sockaddr_un sa;
	char *text;
	int err = control_path(rack, name, &sa);

	if (!err && strlen(line) >= SWITCHD_REQUEST_MAX)
		err = error_set(-EMSGSIZE, "that is too long for a switch");
	if (err)
		return err;
	text = malloc(SWITCHD_REPLY_MAX);
	if (!text)
		return -ENOMEM;
	err = ask_line(sa.sun_path, line, ASK_MS, text, SWITCHD_REPLY_MAX);
	if (err == -ENOENT || err == -ECONNREFUSED)
		err = error_set(err, "no switch '%s' runs in rack %s", name,
				rack);
	else if (err)
		err = error_set(err, "the switch does not answer: %s",
				strerror(-err));
	else
		err = ask_error(text);
	if (!err && out && fputs(text, out) < 0)
		err = -EIO;
	free(text);
	return err;
}
