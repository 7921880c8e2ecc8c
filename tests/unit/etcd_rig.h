/* SPDX-License-Identifier: Apache-2.0 */
/* A real etcd of one member, for as long as a test runs. It writes where
 * nothing waits for a disk. */
#ifndef AQ_TEST_ETCD_RIG_H
#define AQ_TEST_ETCD_RIG_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "ledger/ledger.h"

struct etcd_rig {
	pid_t pid; /* 0: there is no etcd on this machine */
	char dir[64];
	char url[48];
	char store[56];
};

static inline unsigned etcd_rig_port(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	assert_int_equal(close(fd), 0);
	return ntohs(a.sin_port);
}

static inline void etcd_rig_run(const struct etcd_rig *r)
{
	char peer[48], cluster[64], data[80], log[80];
	int fd;

	snprintf(peer, sizeof(peer), "http://127.0.0.1:%u", etcd_rig_port());
	snprintf(cluster, sizeof(cluster), "one=%s", peer);
	snprintf(data, sizeof(data), "%s/data", r->dir);
	snprintf(log, sizeof(log), "%s/log", r->dir);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	fd = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	(void)dup2(fd, 1);
	(void)dup2(fd, 2);
	execlp("etcd", "etcd", "--name", "one", "--data-dir", data,
	       "--listen-client-urls", r->url, "--advertise-client-urls",
	       r->url, "--listen-peer-urls", peer,
	       "--initial-advertise-peer-urls", peer, "--initial-cluster",
	       cluster, NULL);
	_exit(127);
}

/* Until it answers. false: it is not installed. */
static inline bool etcd_rig_start(struct etcd_rig *r)
{
	const struct ledger_place place = {.store = r->store, .rack = "ready"};
	char who[LEDGER_WHO_MAX];
	struct ledger *l;
	int status, err = -1;

	*r = (struct etcd_rig){0};
	snprintf(r->dir, sizeof(r->dir), "%s/aq-etcd-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(r->dir));
	snprintf(r->url, sizeof(r->url), "http://127.0.0.1:%u",
		 etcd_rig_port());
	snprintf(r->store, sizeof(r->store), "etcd:%s", r->url);
	r->pid = fork();
	assert_true(r->pid >= 0);
	if (r->pid == 0)
		etcd_rig_run(r);
	assert_int_equal(ledger_open(&place, &l), 0);
	for (unsigned i = 0; i < 1200 && err != -ENOENT; i++) {
		if (waitpid(r->pid, &status, WNOHANG) == r->pid) {
			r->pid = 0;
			assert_int_equal(WEXITSTATUS(status), 127);
			break;
		}
		err = ledger_leader(l, who);
		if (err != -ENOENT)
			usleep(50000);
	}
	ledger_close(l);
	if (r->pid)
		assert_int_equal(err, -ENOENT);
	return r->pid != 0;
}

static inline int etcd_rig_remove(const char *path, const struct stat *st,
				  int flag, struct FTW *at)
{
	(void)st;
	(void)flag;
	(void)at;
	return remove(path);
}

static inline void etcd_rig_end(struct etcd_rig *r)
{
	if (r->pid) {
		assert_int_equal(kill(r->pid, SIGKILL), 0);
		assert_int_equal(waitpid(r->pid, NULL, 0), r->pid);
	}
	if (r->dir[0])
		assert_int_equal(
			nftw(r->dir, etcd_rig_remove, 8, FTW_DEPTH | FTW_PHYS),
			0);
}

#endif
