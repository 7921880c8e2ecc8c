/* SPDX-License-Identifier: Apache-2.0 */
/* Binds and finds sockets by files; whether a file's owner lives, the kernel
 * says. */
#include "rack_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "error.h"
#include "rundir.h"
#include "trust.h"

enum {
	LOCK_TRIES = 5000,
	LOCK_PAUSE_NS = 1000000,
	/* Only who may enter the directory gets as far as a file in it: the
	 * user who serves the rack, and root, whose daemons have given up
	 * the capability to pass by modes; or the group. */
	SHARED_MODE = 0666,
};

#define LOCK_NAME "sockets.lock"

/* ---- the directory ------------------------------------------------------ */

/* Of the calling thread, as for every socket that it makes. */
static int find_net(uint64_t *net)
{
	struct stat st;
	int err;

	if (stat("/proc/thread-self/ns/net", &st) < 0) {
		err = -errno;
		return error_set(err,
				 "cannot tell the network namespace: %s; is "
				 "/proc mounted?",
				 strerror(-err));
	}
	*net = st.st_ino;
	return 0;
}

int rack_sockets_open(const char *rack, struct rack_sockets *out)
{
	struct rack_sockets r;
	struct trust trust;
	int err = trust_load(&trust);

	if (!err)
		err = find_net(&r.net);
	if (err)
		return err;
	r.shared = trust.has_group || trust.has_user;
	r.dir_fd = rundir_open(rack);
	if (r.dir_fd < 0)
		return r.dir_fd;
	*out = r;
	return 0;
}

void rack_sockets_close(struct rack_sockets *r)
{
	if (r->dir_fd >= 0)
		close(r->dir_fd);
	r->dir_fd = -1;
}

static int lock_open(const struct rack_sockets *r)
{
	const int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(r->dir_fd, LOCK_NAME, flags);

	/* In a sticky directory O_CREAT refuses files of others
	 * (fs.protected_regular). */
	if (fd < 0 && errno == ENOENT)
		fd = openat(r->dir_fd, LOCK_NAME, flags | O_CREAT,
			    r->shared ? SHARED_MODE : 0600);
	/* For its owner the umask is in the way of the group. */
	if (fd >= 0 && r->shared)
		(void)fchmod(fd, SHARED_MODE);
	return fd;
}

int rack_sockets_lock(const struct rack_sockets *r)
{
	const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};
	int fd = lock_open(r);
	unsigned tries = 0;
	int err;

	if (fd < 0) {
		err = -errno;
		return error_set(err,
				 "cannot open " LOCK_NAME
				 " in the runtime directory: %s",
				 strerror(-err));
	}
	/* It is held for some microseconds; but one that was stopped
	 * meanwhile must not stop everybody. */
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		err = -errno;
		if ((err != -EWOULDBLOCK && err != -EINTR) ||
		    ++tries == LOCK_TRIES) {
			close(fd);
			return error_set(err,
					 "cannot lock the names of the rack's "
					 "sockets: somebody holds " LOCK_NAME
					 " in the runtime directory");
		}
		nanosleep(&pause, NULL);
	}
	return fd;
}

void rack_sockets_unlock(const struct rack_sockets *r, int lock)
{
	/* Closing would not do while a child of fork has it, too. */
	(void)flock(lock, LOCK_UN);
	close(lock);
}

/* ---- sockets ------------------------------------------------------------ */

int rack_socket_open(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC,
			0);

	return fd < 0 ? -errno : fd;
}

int rack_socket_begin(const struct rack_sockets *r, int *lock)
{
	int fd = rack_socket_open();

	if (fd < 0)
		return fd;
	*lock = rack_sockets_lock(r);
	if (*lock >= 0)
		return fd;
	close(fd);
	return *lock;
}

int rack_socket_end(const struct rack_sockets *r, int lock, int socket, int err,
		    int *fd)
{
	rack_sockets_unlock(r, lock);
	if (err)
		close(socket);
	else
		*fd = socket;
	return err;
}

/* The file's name: the namespace in front. */
int rack_socket_file(const struct rack_sockets *r, const char *name,
		     char out[RACK_SOCKET_NAME_MAX])
{
	int n = snprintf(out, RACK_SOCKET_NAME_MAX, "%" PRIu64 ":%s", r->net,
			 name);

	return n < 0 || n >= RACK_SOCKET_NAME_MAX || strchr(out, '/') ? -EINVAL
								      : 0;
}

/* Through the descriptor: the directory that was checked, however long its
 * path is. */
static int address_of(const struct rack_sockets *r, const char *file,
		      struct sockaddr_un *sa)
{
	int n;

	*sa = (struct sockaddr_un){.sun_family = AF_UNIX};
	n = snprintf(sa->sun_path, sizeof(sa->sun_path), "/proc/self/fd/%d/%s",
		     r->dir_fd, file);
	return n < 0 || (size_t)n >= sizeof(sa->sun_path) ? -EINVAL : 0;
}

/*
 * Whether no socket is bound to this file. A socket of another type cannot
 * connect, so the owner notices nothing: a living one is of the wrong type
 * (EPROTOTYPE), whether it listens or not; a dead one refuses.
 */
static bool is_dead(const struct sockaddr_un *sa)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool dead;

	if (fd < 0)
		return false;
	dead = connect(fd, (const struct sockaddr *)sa, sizeof(*sa)) < 0 &&
	       errno == ECONNREFUSED;
	close(fd);
	return dead;
}

int rack_socket_bind(const struct rack_sockets *r, const char *name, int fd)
{
	char file[RACK_SOCKET_NAME_MAX];
	struct sockaddr_un sa;
	int err = rack_socket_file(r, name, file);

	if (!err)
		err = address_of(r, file, &sa);
	if (err)
		return err;
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
		if (errno != EADDRINUSE)
			return -errno;
		if (!is_dead(&sa))
			return -EADDRINUSE;
		/* Somebody else's file stays: the directory is sticky. */
		if (unlinkat(r->dir_fd, file, 0) < 0 && errno != ENOENT)
			return -EADDRINUSE;
		if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
			return -errno;
	}
	if (r->shared && fchmodat(r->dir_fd, file, SHARED_MODE, 0) < 0) {
		err = -errno;
		(void)unlinkat(r->dir_fd, file, 0);
	}
	return err;
}

void rack_socket_release(const struct rack_sockets *r, const char *name, int fd)
{
	char file[RACK_SOCKET_NAME_MAX];
	int lock;

	/* With the lock, and while the socket still lives: otherwise the name
	 * could be somebody else's already. Without it the file stays, which
	 * is as good. */
	if (rack_socket_file(r, name, file) == 0) {
		lock = rack_sockets_lock(r);
		if (lock >= 0) {
			(void)unlinkat(r->dir_fd, file, 0);
			rack_sockets_unlock(r, lock);
		}
	}
	close(fd);
}

int rack_socket_connect(const struct rack_sockets *r, const char *name, int *fd)
{
	char file[RACK_SOCKET_NAME_MAX];
	struct sockaddr_un sa;
	int err = rack_socket_file(r, name, file);
	int s;

	if (!err)
		err = address_of(r, file, &sa);
	if (err)
		return err;
	s = rack_socket_open();
	if (s < 0)
		return s;
	if (connect(s, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
		err = errno == ENOENT ? -ECONNREFUSED : -errno;
		close(s);
		return err;
	}
	*fd = s;
	return 0;
}
