/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's half of elastic structures: an object with its map of blocks,
 * one port to each node that has some, and messages that are repeated until
 * they are answered. The structures are el_file.c and el_queue.c.
 */
#ifndef AQ_EL_PRIV_H
#define AQ_EL_PRIV_H

#include <aquifer/elastic.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "client/client.h"
#include "client/link.h"
#include "wire/block_wire.h"

enum {
	EL_PATH_MAX = 1024,
	EL_TICKET_BYTES = 128,
	EL_STAGING_BYTES = 1 << 20,
	EL_READ_BYTES = 4 << 20, /* of a READ, in parts */
	EL_BLOCKS_MAX = 1 << 16, /* of an object */
	EL_PAUSE_US = 50,	 /* the first between two tries */
	EL_PAUSE_MAX_US = 5000,
	EL_LOAD_MS = 60000,  /* from the vault, at most */
	EL_MEMBER_MS = 1000, /* for the answer of a member of a chain */
	EL_AHEAD_MS = 100,   /* for an answer that can wait */
};

/* Where a block is, or a copy of it. */
struct el_place {
	uint64_t generation;
	uint32_t index;
	char node[CLIENT_NODE_NAME_MAX];
};

/* A block, as the map and the block itself say. */
struct el_block {
	uint64_t number;
	uint64_t generation;	/* the same for all its copies */
	bool is_chained;	/* it has copies */
	struct el_place head;	/* takes changes */
	struct el_place reader; /* answers reads; the same without copies */
	/* Of a file: */
	bool is_read;  /* what follows is known */
	bool is_final; /* the end is */
	uint32_t flags;
	uint32_t key;
	uint64_t address;
	uint64_t start;
	uint64_t end;
};

/* Where a message and its answer lie. */
struct el_mail {
	uint8_t *buf;
	struct ibv_mr *mr;
};

/* The way to a node. */
struct el_port {
	uint32_t node; /* index in the rack */
	char name[CLIENT_NODE_NAME_MAX];
	struct client_link *link; /* NULL: not connected */
	uint32_t handle;
	uint32_t tag;
	bool has_changed; /* something, in this session */
	bool sleeps;	  /* while it waits for an answer, if that takes long */
	bool is_armed;	  /* an answer will end a sleep */
	/* For a message beside those of other ports; NULL: not made. */
	struct el_mail own;
};

/* Memory that nodes fetch values from. */
struct el_stage {
	uint8_t *at;
	struct ibv_mr *mr; /* NULL: there is none, or it is plain */
	bool is_plain;	   /* it is the staging memory; nobody can map it */
	bool is_doubtful;  /* a node may still fetch from it */
};

/* A question for more blocks, under way beside the rest. */
struct el_ahead {
	bool is_asked;
	atomic_bool is_over; /* ELAHEAD-1 */
	pthread_t thread;
	pid_t by;
	struct aq_rack *rack;
	const char *path;
	uint64_t after;
	unsigned most;
	int err;
	json_t *map;
};

struct el_object {
	struct aq_rack *rack;
	char path[EL_PATH_MAX];
	enum block_kind kind;
	uint64_t id;
	uint64_t block_bytes;
	uint64_t bound;
	uint64_t copies; /* of each block */
	unsigned block_count;
	unsigned block_room;
	struct el_block *block; /* by number */
	uint8_t ticket[EL_TICKET_BYTES];
	uint8_t session[BLOCK_SESSION_BYTES];
	uint64_t sequence; /* of the last change */
	bool has_channels; /* its links have */
	unsigned port_count;
	struct el_port *port[CLIENT_NODE_MAX];
	/* Message, answer and staging, registered when there is a link. */
	uint8_t *buf;
	struct ibv_mr *mr;
	const struct client_verbs *verbs;
	struct el_stage stage;
	struct el_ahead ahead;
};

/* ---- el_map.c ------------------------------------------------------------ */

/* Opens or makes the object, and reads its map; 0 as kind: whatever it is. */
int el_open(struct el_object *o, struct aq_rack *rack, const char *path,
	    enum block_kind kind,
	    const struct aq_elastic_options *options) MUST_CHECK;
/* Reads the map again. */
int el_refresh(struct el_object *o, uint64_t deadline_ns) MUST_CHECK;
/* Asks for blocks after that number, UINT64_MAX: for the first; and for so many
 * at most. */
int el_grow(struct el_object *o, uint64_t after, unsigned most,
	    uint64_t deadline_ns) MUST_CHECK;
/* The same, as the controller answers it; any thread. */
int el_map_grow(struct aq_rack *rack, const char *path, uint64_t after,
		unsigned most, uint64_t deadline_ns, json_t **map) MUST_CHECK;
/* Takes a map that has come late, unless there is one with as many blocks. */
int el_map_take_longer(struct el_object *o, const json_t *map) MUST_CHECK;
struct el_block *el_find(struct el_object *o, uint64_t number);
/* The first one after that number, or NULL. */
struct el_block *el_next(struct el_object *o, uint64_t number);

uint64_t el_deadline_ns(const struct el_object *o);
uint64_t el_now_ns(void);
/* Waits a little, each time longer; false: the time is over. */
bool el_pause(unsigned *tries, uint64_t deadline_ns);

/* ---- el_ahead.c ---------------------------------------------------------- */

/* Asks for more blocks, as el_grow does, and does not wait. One question is
 * under way at most. */
void el_ahead_ask(struct el_object *o, uint64_t after, unsigned most);
/* Takes the answer, if it is here, or waits for it. Blocks that the caller has
 * found may lie elsewhere afterwards. */
void el_ahead_take(struct el_object *o, bool waits);
void el_ahead_drop(struct el_object *o);

/* ---- el_port.c ----------------------------------------------------------- */

enum {
	EL_WR_SEND = 1,
	EL_WR_RECEIVE,
	EL_WR_READ,
};

int el_port_find(struct el_object *o, const char *name,
		 struct el_port **out) MUST_CHECK;
/* Connects, and presents the ticket, where that is not done. */
int el_port_ready(struct el_object *o, struct el_port *p, bool is_repeat,
		  uint64_t deadline_ns) MUST_CHECK;
void el_port_hang_up(struct el_port *p);
/* Sends a message that lies at `at`, of the region; one answer may come.
 * -EHOSTDOWN: the queue pair is broken. */
int el_port_post(struct ibv_qp *qp, const struct ibv_mr *mr, const uint8_t *at,
		 size_t bytes) MUST_CHECK;
/* One message and its answer. */
int el_port_exchange(struct el_object *o, struct el_port *p,
		     const struct block_op *ops, unsigned count,
		     struct block_result *results, uint64_t acked,
		     uint64_t deadline_ns) MUST_CHECK;
/* The same in two steps, so that messages to several nodes are under way. */
int el_port_send(struct el_object *o, struct el_port *p,
		 const struct el_mail *at, const struct block_op *ops,
		 unsigned count, uint64_t acked) MUST_CHECK;
int el_port_receive(struct el_port *p, const struct el_mail *at, unsigned count,
		    struct block_result *results,
		    uint64_t deadline_ns) MUST_CHECK;
/* Makes the port's own place. */
int el_port_own(struct el_object *o, struct el_port *p) MUST_CHECK;
/* Until a completion of that kind, whose immediate value is the tag. */
int el_port_await(struct el_port *p, unsigned kind, uint32_t tag,
		  uint64_t deadline_ns) MUST_CHECK;
/* Data of answers is brought there. */
uint8_t *el_staging(struct el_object *o);
/* Memory of the caller that a node fetches from or brings to; NULL: there is no
 * room for its key. */
struct ibv_mr *el_register(const struct el_object *o, void *data,
			   size_t len_bytes);
void el_unregister(const struct el_object *o, struct ibv_mr *mr);
void el_close(struct el_object *o);
/* The words of a status that is an error for the caller. */
int el_error(const struct el_object *o, enum block_status status);

/* ---- el_stage.c ---------------------------------------------------------- */

/* EL_STAGING_BYTES for values of the next message, and their key. There is a
 * connection, and no message under way. */
uint8_t *el_stage(struct el_object *o, uint32_t *key);
void el_stage_drop(struct el_object *o);

/* ---- el_call.c ----------------------------------------------------------- */

/*
 * Sends operations to a block and waits for their results, repeating what was
 * not answered until the deadline. Their handle, block and, for changes, their
 * sequence numbers are filled in here. Data of results is valid until the next
 * call. -ENODEV: the block is not in the map any more.
 */
int el_call(struct el_object *o, uint64_t number, struct block_op *ops,
	    unsigned count, struct block_result *results,
	    uint64_t deadline_ns) MUST_CHECK;
/* The same with sequence numbers that the caller has given, and what it has
 * answers to; those of a key-value store stay with an operation that goes to
 * another block. */
int el_call_as(struct el_object *o, uint64_t number, struct block_op *ops,
	       unsigned count, struct block_result *results, uint64_t acked,
	       uint64_t deadline_ns) MUST_CHECK;
/* Without patience for a node that is busy. */
int el_call_once(struct el_object *o, uint64_t number, struct block_op *ops,
		 unsigned count, struct block_result *results, uint64_t acked,
		 uint64_t deadline_ns) MUST_CHECK;
/* Fills in the port's handle. */
void el_port_address(struct el_port *p, struct block_op *ops, unsigned count);
/* The same for operations on several blocks of a node, which the caller has
 * filled in, except for the handle. */
int el_call_node(struct el_object *o, struct el_port *p, struct block_op *ops,
		 unsigned count, struct block_result *results, uint64_t acked,
		 bool is_repeat, uint64_t deadline_ns) MUST_CHECK;
/* Until an event of these kinds happened to the block since its entry of that
 * serial, or so long. The object's links have channels. */
int el_wait(struct el_object *o, uint64_t number, uint64_t serial,
	    uint32_t events, uint64_t until_ns,
	    uint64_t deadline_ns) MUST_CHECK;
/* READs a part of a block. */
int el_read(struct el_object *o, uint64_t number, uint64_t offset, void *data,
	    size_t len_bytes, uint64_t deadline_ns) MUST_CHECK;

/* ---- el_value.c ---------------------------------------------------------- */

struct el_value {
	const void *data;
	size_t len_bytes;
	uint64_t answer; /* is written */
};

/*
 * As many of the values as a message carries, each as one operation. *done says
 * how many were executed, *status what became of the next one; BLOCK_OK: it was
 * not sent. *final is the value of the result that was refused.
 */
int el_send(struct el_object *o, uint64_t number, enum block_opcode opcode,
	    uint64_t arg, struct el_value *values, unsigned count,
	    unsigned *done, enum block_status *status, uint64_t *final,
	    uint64_t deadline_ns) MUST_CHECK;
/* Connects, so that there is staging memory. */
int el_warm_up(struct el_object *o, uint64_t number,
	       uint64_t deadline_ns) MUST_CHECK;
/* One operation without a value. */
int el_tell(struct el_object *o, uint64_t number, enum block_opcode opcode,
	    uint64_t arg, struct block_result *result,
	    uint64_t deadline_ns) MUST_CHECK;

struct el_stat {
	uint64_t address;
	uint64_t end;
	uint64_t items;
	uint32_t key;
	uint32_t flags;
};
/* *status is not BLOCK_OK: the block is another one now. */
int el_stat(struct el_object *o, uint64_t number, struct el_stat *out,
	    enum block_status *status, uint64_t deadline_ns) MUST_CHECK;

#endif
