/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connections of one listening socket: their peers, and how far their
 * requests have come. A slow caller cannot keep others out: a request has a
 * deadline from its first byte to its last, one address has half of the places
 * at most, and when all are taken, a new connection replaces the one that has
 * waited longest for its own request to become complete.
 *
 * A connection is ended by shutdown(2) only; the HTTP library closes it. Only
 * the thread that accepts admits and ends, so a descriptor in the table is
 * always the connection that it was.
 */
#ifndef AQ_CTL_CALLER_PRIV_H
#define AQ_CTL_CALLER_PRIV_H

#include <pthread.h>
#include <sys/socket.h>

#include "base/base.h"
#include "base/list.h"

enum {
	CALLER_TEXT = 64,
	CALLER_REQUEST_MS = 10000, /* from the first byte to the last */
	CALLER_REPLY_MS = 30000,   /* until all of it is taken */
	CALLER_IDLE_MS = 70000,	   /* between requests */
};

/* The party that a limit holds for: an IPv4 address, the network of an IPv6
 * address, all of loopback together, or a user of this machine. */
struct caller_key {
	uint8_t bytes[16];
	bool is_user;
};

/* The key of the peer of a connected socket; also in words, with its port. */
int caller_key_of(int fd, struct caller_key *key,
		  char text[CALLER_TEXT]) MUST_CHECK;
bool caller_key_equal(const struct caller_key *a, const struct caller_key *b);
bool caller_key_is_loopback(const struct caller_key *key);
/* The key alone in words: "uid 0", "192.0.2.1", "2001:db8::". */
void caller_key_format(const struct caller_key *key, char text[CALLER_TEXT]);

enum caller_phase {
	CALLER_FREE,
	CALLER_SENDS,  /* its request */
	CALLER_SERVED, /* the handler works for it; it is left alone */
	CALLER_READS,  /* the reply */
	CALLER_IDLE,
	CALLER_ENDED, /* the HTTP library will notice */
	CALLER_PHASES,
};

struct caller {
	enum caller_phase phase;
	int fd;
	bool is_linked; /* the HTTP library has it */
	struct caller_key key;
	char text[CALLER_TEXT];
	char origin[CALLER_TEXT]; /* the key in words */
	uint64_t since_ns;	  /* when the phase began */
	uint64_t bytes_before;	  /* received until then, of TCP */
	/* The name in its certificate, once that was checked; else "". Only
	 * for the thread that serves it. */
	char certificate[CALLER_TEXT];
	struct list in_phase; /* those of a phase, the oldest first */
	struct list in_fd;    /* those with the same hash of fd */
	struct list in_key;   /* those with the same hash of key, if live */
};

struct callers {
	pthread_mutex_t lock;
	unsigned max;	  /* connections that are not ended */
	unsigned per_key; /* the same, of one key */
	unsigned room;	  /* of the table: ended ones take a while */
	unsigned live_count;
	uint64_t ended_late, ended_for_others, refused;
	struct caller *caller;
	struct list phase[CALLER_PHASES];
	struct list *by_fd, *by_key; /* `room` heads each */
};

int callers_init(struct callers *t, unsigned max) MUST_CHECK; /* -ENOMEM */
void callers_destroy(struct callers *t);
/* Takes a place for a new connection. -EAGAIN: none can be ended for it. */
int callers_admit(struct callers *t, int fd, uint64_t now_ns,
		  struct caller **out) MUST_CHECK;
/* Ends the connection that waits longest for its own request. False: none. */
bool callers_spare(struct callers *t);
/* Ends those that are too late. */
void callers_tick(struct callers *t, uint64_t now_ns);

/* The library has taken this descriptor. NULL: it is none of ours. */
struct caller *callers_link(struct callers *t, int fd);
void callers_phase(struct callers *t, struct caller *c, enum caller_phase phase,
		   uint64_t now_ns);
/* Call it before the descriptor is closed. */
void callers_leave(struct callers *t, struct caller *c);

#endif
