/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One client of the gateway, without its socket: bytes in, bytes out. And the
 * gateway itself, as far as commands see it.
 */
#ifndef AQ_REDIS_CLIENT_H
#define AQ_REDIS_CLIENT_H

#include <aquifer/kv.h>

#include "base/hist.h"
#include "base/list.h"
#include "group.h"
#include "multi.h"
#include "redis.h"
#include "reply.h"
#include "resp.h"
#include "store.h"
#include "table.h"

/* The release whose commands and words are followed. */
#define GATEWAY_REDIS_VERSION "7.0.15"

enum {
	GATEWAY_NAME_MAX = 64,
	GATEWAY_ADDRESS_MAX = 64,
	GATEWAY_READ_BYTES = 16 << 10, /* of one turn */
	/* Operations that run together. */
	BATCH_OPS = 256,
	BATCH_FULL = 240,      /* so many do not wait for more */
	BATCH_READ_WORDS = 64, /* of bits that tell the keys of GETs */
	REAP_MS = 100,
	COMMANDS_MAX = 64, /* rows of the table of commands, at most */
	BATCH_VALUE_BYTES = 1024,
	/* A client with this many unread answers is not read from. */
	GATEWAY_OUT_HIGH = 1 << 20,
	/* Buffers that grew beyond are given back when they are empty. */
	GATEWAY_KEEP_BYTES = 64 << 10,
};

struct gateway_stats {
	uint64_t connections;
	uint64_t connections_refused;
	uint64_t commands;
	uint64_t errors_protocol;
	/* Clients that were ended, by reason. */
	uint64_t query_limit;
	uint64_t output_limit;
	uint64_t evicted;
	uint64_t wrong_passwords;
	uint64_t hits;
	uint64_t misses;
	uint64_t bytes_in;
	uint64_t bytes_out;
	uint64_t rejected; /* commands neither executed nor queued */
	/* By the rows of redis_commands. */
	uint64_t calls[COMMANDS_MAX];
	uint64_t errors[COMMANDS_MAX];
};

void gateway_stats_add(struct gateway_stats *sum,
		       const struct gateway_stats *s);

/* Where the search for expired keys is; see reap.c. */
struct reaper {
	bool is_awake; /* something may expire */
	bool has_end;  /* this pass has seen a key that will expire */
	uint64_t cursor;
	uint64_t next_ms;
};

/* What the function of a change in a batch works with. */
union batch_work {
	struct store_sum sum;
	struct store_end end;
	struct store_append append;
};

/* Belongs to one thread of the gateway. */
struct gateway {
	struct group *group; /* all threads */
	int wake_fd;	     /* ends its wait for clients */
	struct aq_rack *rack;
	struct aq_kv *kv;
	struct aq_kv_client *kv_client;
	const struct redis_options *options;
	uint16_t port;
	uint64_t start_ms; /* by gateway_mono_ms, as all but ends of keys */
	_Atomic uint64_t client_bytes; /* of its clients' buffers */
	uint64_t resets;       /* of the group, that its counters know of */
	uint32_t paused_count; /* clients that wait after a wrong password */
	uint32_t client_count;
	struct list clients;
	struct table_state table;
	struct gateway_stats stats;
	struct hist latency; /* ns, of all commands */
	struct reaper reaper;
	/* Old values that commands look at, and values that they make. */
	struct reply scratch;
	struct reply made;
	struct stage *stage; /* of the transaction that runs now, or NULL */
	/* Commands that are being collected, of any clients. */
	struct aq_kv_op batch[BATCH_OPS];
	union batch_work batch_work[BATCH_OPS];
	const struct command *batch_command[BATCH_OPS];
	uint32_t batch_len;
	uint32_t batch_changes; /* all but GETs */
	bool batch_has_reads;
	uint64_t batch_read[BATCH_READ_WORDS];
	char batch_value[BATCH_OPS][BATCH_VALUE_BYTES];
};

struct client {
	struct list link; /* in the gateway */
	uint64_t id;
	uint64_t since_ms;
	uint64_t active_ms;
	uint64_t resume_ms; /* not before; 0: it is not paused */
	uint64_t counted_bytes;
	char address[GATEWAY_ADDRESS_MAX];
	char name[GATEWAY_NAME_MAX];
	char lib_name[GATEWAY_NAME_MAX];
	char lib_version[GATEWAY_NAME_MAX];
	bool is_trusted;	    /* gave the password, or there is none */
	bool is_ending;		    /* when the answers are sent */
	const struct command *last; /* that it called; NULL: none */
	struct multi multi;
	struct resp_parser parser;
	char *in;
	size_t in_at; /* start of the first command that has not run */
	size_t in_len;
	size_t in_capacity;
	struct reply out;
	size_t out_at; /* sent so far */
};

/* reap.c. Deletes all keys; keys that others set meanwhile may stay. */
int reap_all(struct gateway *g) MUST_CHECK;
/* A key will expire. */
void reap_wake(struct gateway *g);
/* Takes expired keys out, every REAP_MS while there may be some. */
void reap_turn(struct gateway *g);

void client_init(struct client *s, struct gateway *g, const char *address);
void client_release(struct gateway *g, struct client *s);

/* Room for more bytes: at least one. -ENOMEM; -E2BIG: the client has sent more
 * than it may without completing a command. */
int client_space(const struct gateway *g, struct client *s, char **at,
		 size_t *len) MUST_CHECK;
/* That many bytes came: runs every command that is complete, or collects it;
 * see batch_flush. */
void client_filled(struct gateway *g, struct client *s, size_t len);
/* Runs commands that came but waited because answers were not read. */
void client_run(struct gateway *g, struct client *s);
/* That many bytes of the answers were sent. */
void client_sent(struct client *s, size_t len);

static inline size_t client_unsent(const struct client *s)
{
	return s->out.len - s->out_at;
}

/* Commands wait for the answers to be read. */
static inline bool client_is_full(const struct client *s)
{
	return client_unsent(s) >= GATEWAY_OUT_HIGH;
}

#endif
