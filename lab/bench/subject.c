/* SPDX-License-Identifier: Apache-2.0 */
/* Starts, runs and ends the processes of a subject. */
#include "subject.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shield.h"
#include "ticks.h"

static const char *const role_names[SIDE_ROLES] = {"client", "server",
						   "forwarder"};

struct child_fds {
	int ctl;
	int peer;
	int other; /* the other side's end of peer: the child must close it, or
		      it would not notice that the other side died */
	int page;
};

static void child_exec(const struct subject_desc *d, const char *helper,
		       enum side_role role, const struct child_fds *fds)
{
	char ctl[12], peer[12], page[12];

	snprintf(ctl, sizeof(ctl), "%d", fds->ctl);
	snprintf(peer, sizeof(peer), "%d", fds->peer);
	snprintf(page, sizeof(page), "%d", fds->page);
	fcntl(fds->ctl, F_SETFD, 0);
	fcntl(fds->peer, F_SETFD, 0);
	fcntl(fds->page, F_SETFD, 0);
	setenv("UCX_TLS", d->ucx_tls, 1);
	if (strcmp(d->ucx_tls, "tcp") == 0)
		setenv("UCX_NET_DEVICES", "lo", 0);
	setenv("UCX_LOG_LEVEL", "error", 0);
	execl(helper, helper, role_names[role], d->ucx_mode, ctl, peer, page,
	      (char *)NULL);
	_exit(127);
}

/* Two addresses on loopback are two hosts, which cannot share memory. */
static void child_setup_udp(const struct subject_desc *d, enum side_role role)
{
	char loss[12];

	snprintf(loss, sizeof(loss), "%u", d->loss_ppm);
	setenv("AQUIFER_NIC_ADDRESS",
	       d->loss_ppm ? role == SIDE_CLIENT ? "127.0.91.1" : "127.0.91.2"
	       : role == SIDE_CLIENT ? "127.0.90.1"
				     : "127.0.90.2",
	       1);
	setenv("AQUIFER_NIC_PORT", "udp", 1);
	setenv("AQUIFER_NIC_LOSS_PPM", loss, 1);
}

static pid_t child_start(const struct subject_desc *d, const char *helper,
			 enum side_role role, const struct child_fds *fds)
{
	pid_t parent = getpid();
	pid_t pid;

	/* Else the child's _exit path could print buffered text again. */
	fflush(NULL);
	pid = fork();
	if (pid != 0)
		return pid < 0 ? -errno : pid;
	/* A conductor that dies must not leave real-time spinners behind. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	if (getppid() != parent)
		_exit(1);
	if (fds->other >= 0)
		close(fds->other);
	if (d->udp)
		child_setup_udp(d, role);
	if (d->at_switch) {
		char port[64];

		snprintf(port, sizeof(port), "switch:%s", d->at_switch);
		setenv("AQUIFER_NIC_PORT", port, 1);
	}
	if (d->ucx_mode)
		child_exec(d, helper, role, fds);
	_exit(side_main(d->ops, d->param, role, fds->ctl, fds->peer, fds->page,
			d->is_plain));
}

/* An answer of one side, or -ETIMEDOUT, or what the side said. */
static int await(struct subject *subj, enum side_role role, int timeout_ms,
		 struct side_result *out)
{
	struct pollfd p = {.fd = subj->ctl_fd[role], .events = POLLIN};
	int rc = poll(&p, 1, timeout_ms);

	if (rc < 0)
		rc = -errno;
	else if (rc == 0)
		rc = -ETIMEDOUT;
	else
		rc = side_recv(subj->ctl_fd[role], out, sizeof(*out));
	if (rc < 0) {
		snprintf(subj->why, sizeof(subj->why), "%s %s: %s",
			 subj->desc->name, role_names[role],
			 rc == -EPIPE ? "died" : strerror(-rc));
		return rc;
	}
	out->why[sizeof(out->why) - 1] = '\0';
	if (out->status < 0) {
		snprintf(subj->why, sizeof(subj->why), "%s %s: %s",
			 subj->desc->name, role_names[role],
			 out->why[0] ? out->why : strerror(-out->status));
		return out->status;
	}
	return 0;
}

static int start_sides(struct subject *subj, const char *helper, int page_fd)
{
	int peer[2];
	int ctl[2];
	int rc = 0;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, peer) < 0)
		return -errno;
	for (int role = 0; role < subj->role_count && rc == 0; role++) {
		bool has_peer = role < 2;
		struct child_fds fds = {.peer = has_peer ? peer[role] : -1,
					.other = has_peer ? peer[1 - role] : -1,
					.page = page_fd};
		pid_t pid;

		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ctl) <
		    0) {
			rc = -errno;
			break;
		}
		fds.ctl = ctl[1];
		subj->ctl_fd[role] = ctl[0];
		pid = child_start(subj->desc, helper, (enum side_role)role,
				  &fds);
		close(ctl[1]);
		if (pid < 0)
			rc = (int)pid;
		else
			subj->pid[role] = pid;
	}
	close(peer[0]);
	close(peer[1]);
	return rc;
}

int subject_start(struct subject *subj, const struct subject_desc *desc,
		  const char *helper, const struct subject_world *world)
{
	size_t len = SIDE_PAGE_BYTES + SIDE_SHARED_BYTES;
	struct side_result r;
	int page_fd, rc;
	void *m;

	*subj = (struct subject){
		.desc = desc,
		.world = world,
		.ctl_fd = {-1, -1, -1},
		.role_count = desc->ops && desc->ops->forward ? 3 : 2};
	page_fd = memfd_create("aquifer-bench", MFD_CLOEXEC);
	if (page_fd < 0)
		return -errno;
	if (ftruncate(page_fd, (off_t)len) < 0) {
		rc = -errno;
		goto out_close;
	}
	m = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, page_fd, 0);
	if (m == MAP_FAILED) {
		rc = -errno;
		goto out_close;
	}
	subj->page = m;
	rc = start_sides(subj, helper, page_fd);
	for (int role = 0; role < subj->role_count && rc == 0; role++) {
		rc = await(subj, (enum side_role)role, SUBJECT_SETUP_MS, &r);
		if (rc == 0 && (role == 0 || r.shield < subj->shield))
			subj->shield = r.shield;
	}
out_close:
	close(page_fd);
	if (rc < 0) {
		if (subj->why[0] == '\0')
			snprintf(subj->why, sizeof(subj->why), "%s: %s",
				 desc->name, strerror(-rc));
		subject_stop(subj);
	}
	return rc;
}

/* What is known before a round and after it. */
struct reading {
	struct shield_meter meter;
	uint64_t cpu_ns[SUBJECT_OTHERS_MAX];
	double read[SUBJECT_READ_MAX];
};

static int read_world(const struct subject *subj, struct reading *r)
{
	static const struct subject_world nobody = {.pid_count = 0};
	const struct subject_world *w = subj->world ? subj->world : &nobody;

	for (unsigned i = 0; i < w->pid_count; i++)
		r->cpu_ns[i] = shield_process_ns(w->pid[i]);
	if (w->read)
		w->read(w->ctx, r->read);
	return shield_meter_read(&r->meter, subj->pid, w->pid, w->pid_count);
}

static void compare_world(const struct subject *subj, const struct reading *a,
			  const struct reading *b, struct side_result *out)
{
	const struct subject_world *w = subj->world;
	double wall_ns = (double)(b->meter.wall_ns - a->meter.wall_ns);

	for (unsigned i = 0; w && i < w->pid_count && i < SUBJECT_CPU_MAX; i++)
		out->more[SUBJECT_MORE_CPU + i] =
			(double)(b->cpu_ns[i] - a->cpu_ns[i]) / wall_ns;
	for (unsigned i = 0; w && w->read && i < SUBJECT_READ_MAX; i++)
		out->more[SUBJECT_MORE_READ + i] = b->read[i] - a->read[i];
}

/* The others have the measured processes' priority, for the round only. */
static void raise_world(const struct subject *subj, bool up)
{
	const struct subject_world *w = subj->world;

	for (unsigned i = 0; w && i < w->pid_count; i++) {
		if (!up)
			shield_leave_process(w->pid[i]);
		else if (subj->shield == SHIELD_FIFO)
			(void)shield_enter_process(w->pid[i]);
	}
}

int subject_round(struct subject *subj, uint64_t window_ns,
		  struct side_result *out, double *foreign_cores)
{
	struct side_command cmd = {.run = 1, .window_ns = window_ns};
	int timeout_ms = (int)(window_ns / 1000000) + SUBJECT_ROUND_SLACK_MS;
	struct reading before = {0}, after = {0};
	struct side_result other;
	int rc;

	atomic_store_explicit(&subj->page->stop, 0, memory_order_relaxed);
	raise_world(subj, true);
	rc = read_world(subj, &before);
	/* The client is the first, and told last. */
	for (int role = subj->role_count - 1; role >= 0 && rc == 0; role--)
		rc = side_send(subj->ctl_fd[role], &cmd, sizeof(cmd));
	if (rc < 0) {
		raise_world(subj, false);
		snprintf(subj->why, sizeof(subj->why), "%s: %s",
			 subj->desc->name, strerror(-rc));
		return rc;
	}
	rc = await(subj, SIDE_CLIENT, timeout_ms, out);
	atomic_store_explicit(&subj->page->stop, 1, memory_order_relaxed);
	raise_world(subj, false);
	if (rc == 0)
		rc = read_world(subj, &after);
	if (rc < 0)
		return rc;
	*foreign_cores = shield_foreign_cores(&before.meter, &after.meter);
	compare_world(subj, &before, &after, out);
	for (int role = SIDE_SERVER; role < subj->role_count && rc == 0; role++)
		rc = await(subj, (enum side_role)role, timeout_ms, &other);
	return rc;
}

static void child_end(pid_t pid)
{
	uint64_t deadline_ns = bench_now_ns() + SUBJECT_END_MS * 1000000ull;
	struct timespec nap = {.tv_nsec = 1000 * 1000};

	while (bench_now_ns() < deadline_ns) {
		if (waitpid(pid, NULL, WNOHANG) != 0)
			return;
		nanosleep(&nap, NULL);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

void subject_stop(struct subject *subj)
{
	struct side_command cmd = {.run = 0};

	if (subj->page)
		atomic_store_explicit(&subj->page->stop, 1,
				      memory_order_relaxed);
	for (int role = 0; role < subj->role_count; role++) {
		if (subj->ctl_fd[role] < 0)
			continue;
		/* It may have died already; closing says the same. */
		(void)!side_send(subj->ctl_fd[role], &cmd, sizeof(cmd));
		close(subj->ctl_fd[role]);
		subj->ctl_fd[role] = -1;
	}
	for (int role = 0; role < subj->role_count; role++) {
		if (subj->pid[role] > 0)
			child_end(subj->pid[role]);
		subj->pid[role] = 0;
	}
	if (subj->page)
		munmap(subj->page, SIDE_PAGE_BYTES + SIDE_SHARED_BYTES);
	subj->page = NULL;
}
