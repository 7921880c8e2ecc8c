/* SPDX-License-Identifier: Apache-2.0 */
/* The server, its clients with their sockets, and the sockets that it listens
 * on. One thread. */
#ifndef AQ_REDIS_SERVER_PRIV_H
#define AQ_REDIS_SERVER_PRIV_H

#include "base/log.h"
#include "client.h"
#include "http.h"

/* A client with its socket. */
struct peer {
	struct client client;
	struct server *server;
	int fd;
	uint32_t events; /* that epoll watches for */
	bool is_over;	 /* the connection */
};

struct server {
	struct gateway gateway;
	int epoll_fd;
	struct daemon *daemon;
	struct http_view view;
	uint64_t published_ms;
	int listener_fd[2]; /* TCP, unix; -1: none */
	/* A spare descriptor, to tell a client that there is none left. */
	int spare_fd;
	uint64_t listeners_ms; /* when they accept again; 0: they do */
	struct log_limit full_log;
};

/* It is gone when this returns. */
void peer_end(struct peer *p);
/* The first half of a turn: reads, and collects what can run together. */
void peer_take(struct peer *p, uint32_t events);
/* The second half, when everything that was collected is answered. May end
 * it. */
void peer_answer(struct peer *p);

/* Resumes clients whose wait after a wrong password is over. */
void peers_resume(struct server *v);
/* Ends the client with most memory, while all together have more than they may.
 * Between turns only. */
void peers_end_largest(struct server *v);
/* Ends clients that were silent for too long. */
void peers_end_idle(struct server *v);

/* ---- listener.c: listening sockets -------------------------------------- */

/* `port` 0: any; *bound is the one. */
int listener_tcp(const char *address, uint16_t port, uint16_t *bound,
		 int *fd) MUST_CHECK;
/* Replaces a socket file that no process serves any more. */
int listener_unix(const char *path, int *fd) MUST_CHECK;
/* The next client, not blocking, and where it comes from; or -errno. */
int listener_accept(int listener_fd, char *address,
		    size_t address_bytes) MUST_CHECK;

#endif
