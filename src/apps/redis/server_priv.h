/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server, its threads, their clients with their sockets, and the sockets
 * that it listens on. The first thread is the daemon's own: it also listens,
 * and hands new clients to the thread that has fewest.
 */
#ifndef AQ_REDIS_SERVER_PRIV_H
#define AQ_REDIS_SERVER_PRIV_H

#include "base/log.h"
#include "client.h"
#include "http.h"

enum {
	MEMBER_EVENTS = 64, /* of one turn */
	MEMBER_WHY_MAX = 256,
};

/* A client with its socket. */
struct peer {
	struct client client;
	struct member *member;
	struct peer *next; /* of those that are handed over */
	int fd;
	uint32_t events; /* that epoll watches for */
	bool is_over;	 /* the connection */
	char address[GATEWAY_ADDRESS_MAX];
};

/* A thread, and what is its alone but for the last part. */
struct member {
	struct gateway gateway;
	struct server *server;
	uint32_t index;
	int epoll_fd;
	uint64_t published_ms;
	uint64_t published_commands;
	uint64_t swept_ms;
	pthread_t thread; /* but for the first */
	bool is_running;
	int err; /* why it has ended, and in words */
	char why[MEMBER_WHY_MAX];
	/* Clients that were accepted for it, and how many it has in all. */
	pthread_mutex_t lock;
	struct peer *accepted;
	_Atomic uint32_t load;
};

struct server {
	struct group group;
	struct member *member;
	uint32_t member_count;
	uint32_t chosen; /* where to look first for who gets a client */
	struct daemon *daemon;
	struct http_view view;
	int listener_fd[2]; /* TCP, unix; -1: none */
	/* A spare descriptor, to tell a client that there is none left. */
	int spare_fd;
	uint64_t listeners_ms; /* when they accept again; 0: they do */
	struct log_limit full_log;
};

/* ---- member.c: a thread and its turns ------------------------------------ */

/* Its epoll and its table; after an error member_close. */
int member_open(struct member *m, struct server *v, uint32_t index) MUST_CHECK;
/* Ends its clients. Its thread has ended, or is the caller. */
void member_close(struct member *m);
/* Starts threads for all but the first. */
int members_start(struct server *v) MUST_CHECK;
/* Ends them and waits. Returns the first error of one of them, with words. */
int members_stop(struct server *v) MUST_CHECK;
/* A client for it, from the thread that listens; the descriptor is its. */
void member_give(struct member *m, int fd, const char *address);
/* Adds a descriptor; epoll answers with its address. */
int member_watch(struct member *m, int *fd) MUST_CHECK;
/* Turns, until the server ends. */
int member_serve(struct member *m) MUST_CHECK;

/* server.c. What else the first thread waits for. */
void server_ready(struct server *v, int *fd);
/* How long it may wait for it, at most `ms`. */
int server_wait_ms(const struct server *v, int ms);
/* Between turns. */
void server_turn(struct server *v);

/* ---- peer.c -------------------------------------------------------------- */

/* It is gone when this returns. */
void peer_end(struct peer *p);
/* The first half of a turn: reads, and collects what can run together. */
void peer_take(struct peer *p, uint32_t events);
/* The second half, when everything that was collected is answered. May end
 * it. */
void peer_answer(struct peer *p);

/* Resumes clients whose wait after a wrong password is over. */
void peers_resume(struct member *m);
/* Ends the client with most memory, while all together have more than they may.
 * Between turns only. */
void peers_end_largest(struct member *m);
/* Ends clients that were silent for too long. */
void peers_end_idle(struct member *m);

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
