/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to the cache server. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "coherent/map.h"
#include "shm.h"

enum {
	GROUP_MAX = 16,
	AWAIT_TRIES = 10000, /* of a millisecond */
};

/* Of the environment, which the program may change later. */
static struct {
	bool is_on;
	char socket[108];
	char group[GROUP_MAX];
	bool wants_two;		/* of what this program makes */
	_Atomic int complained; /* the last cause */
} place;

/* As COHERENT_ENV says. */
__attribute__((constructor(101))) static void start(void)
{
	const char *env = getenv(COHERENT_ENV);
	const char *group = env ? strchr(env, ' ') : NULL;
	const char *copies = group ? strchr(group + 1, ' ') : NULL;
	size_t n = group ? (size_t)(group - env) : 0;
	size_t g = copies ? (size_t)(copies - group - 1) : 0;

	if (!n || n >= sizeof(place.socket) || !g || g >= sizeof(place.group))
		return;
	memcpy(place.socket, env, n);
	memcpy(place.group, group + 1, g);
	place.wants_two = strcmp(copies + 1, "2") == 0;
	place.is_on = true;
}

bool shm_is_on(void)
{
	return place.is_on;
}

int shm_fail(int err)
{
	errno = err < 0 ? -err : err;
	return -1;
}

void shm_complain(const char *what, int err)
{
	const char *why = strerrorname_np(-err);
	char line[320];
	int n;

	if (atomic_exchange_explicit(&place.complained, err,
				     memory_order_relaxed) == err)
		return;
	n = snprintf(line, sizeof(line), "aquifer run --shared: %s: %s\n", what,
		     why ? why : "?");
	(void)!write(STDERR_FILENO, line,
		     n < (int)sizeof(line) ? (size_t)n : sizeof(line) - 1);
}

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* GROUP.KIND.NAME, with ".xx" for every byte that names of segments cannot
 * have: two names never become one. */
int shm_name(enum shm_kind kind, const char *name, char out[COHERENT_NAME_MAX])
{
	int n = snprintf(out, COHERENT_NAME_MAX, "%s.%c.", place.group,
			 (char)kind);

	if (!*name)
		return -EINVAL;
	for (; *name; name++) {
		if (n + 4 > COHERENT_NAME_MAX)
			return -ENAMETOOLONG;
		if (is_plain(*name))
			out[n++] = *name;
		else
			n += snprintf(out + n, (size_t)(COHERENT_NAME_MAX - n),
				      ".%02x", (unsigned char)*name);
	}
	out[n] = '\0';
	return 0;
}

int shm_connect(void)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int err, fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	memcpy(sa.sun_path, place.socket, sizeof(sa.sun_path));
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0)
		return fd;
	err = -errno;
	(void)close(fd);
	shm_complain("this machine's cache server does not answer", err);
	return -EIO;
}

int shm_find(int sock, const char *name, uint64_t id, unsigned flags,
	     struct shm_object *out, int *fd)
{
	struct coherent_ask ask = {
		.kind = COHERENT_FIND,
		.id = id,
		.flags = flags | (fd ? 0 : COHERENT_BARE) |
			 (place.wants_two ? COHERENT_TWO : 0)};
	struct coherent_answer a;
	unsigned count = 0;
	int err;

	if (name)
		(void)snprintf(ask.name, sizeof(ask.name), "%s", name);
	err = coherent_question(sock, &ask, -1, &a, fd, fd ? 1 : 0, &count);
	if (!err && fd && !count)
		err = -EIO;
	if (err)
		return err;
	*out = (struct shm_object){.id = a.id,
				   .va = a.va,
				   .length_bytes = a.length_bytes,
				   .reserved_bytes = a.reserved_bytes,
				   .is_new = a.is_new};
	return 0;
}

/* One question that is answered by success alone. */
static int ask_once(struct coherent_ask *ask)
{
	struct coherent_answer a;
	unsigned count;
	int sock = shm_connect();
	int err = sock < 0 ? sock
			   : coherent_question(sock, ask, -1, &a, NULL, 0,
					       &count);

	if (sock >= 0)
		(void)close(sock);
	return err;
}

int shm_resize(uint64_t id, uint64_t length_bytes)
{
	struct coherent_ask ask = {
		.kind = COHERENT_RESIZE, .id = id, .size_bytes = length_bytes};

	return ask_once(&ask);
}

int shm_unlink_object(const char *name, uint64_t id)
{
	struct coherent_ask ask = {.kind = COHERENT_UNLINK, .id = id};

	if (name)
		(void)snprintf(ask.name, sizeof(ask.name), "%s", name);
	return ask_once(&ask);
}

int shm_look(uint64_t id, struct shm_object *out)
{
	int sock = shm_connect();
	int err = sock < 0 ? sock : shm_find(sock, NULL, id, 0, out, NULL);

	if (sock >= 0)
		(void)close(sock);
	return err;
}

int shm_await(uint64_t id, struct shm_object *out)
{
	struct timespec pause = {.tv_nsec = 1000000};

	for (unsigned i = 0; i < AWAIT_TRIES; i++) {
		int err = shm_look(id, out);

		if (err || out->length_bytes)
			return err;
		(void)nanosleep(&pause, NULL);
	}
	return -ETIMEDOUT;
}
