/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program of the switch is: packet in, zero or more packets out, timers,
 * control calls, and tables whose size it declares. How to add one: write
 * src/rack/switch/NAME.c with a `const struct tor_program tor_NAME`, name it in
 * programs.c, the build file and the man page.
 *
 * A program runs in the switch's thread and owns its state alone. It must not
 * allocate in `packet` or in timers, and every loop over a packet's effect has
 * a bound. It never sees a packet whose ICRC is wrong as `roce`.
 */
#ifndef AQ_TOR_PROGRAM_H
#define AQ_TOR_PROGRAM_H

#include "base/timer.h"
#include "tor.h"
#include "wire/wire.h"

struct tor_end;

/* One packet on its way through the programs. */
struct tor_pkt {
	struct tor *tor;
	struct tor_port *in;  /* NULL: made by a program */
	struct tor_port *out; /* where to; NULL: by its address */
	/* The frame as it came. Its bytes do not change: a program changes
	 * `wire` and sets `changed` instead. */
	const uint8_t *frame;
	size_t len_bytes;
	const void *hint;
	bool roce;    /* `wire` is the parsed packet */
	bool changed; /* `wire` is what leaves, with a new ICRC */
	bool own;     /* from or to an end of the switch */
	uint8_t next; /* the program that sees it next; the core's */
	uint8_t depth;
	struct tor_end *end; /* that it is for, or NULL */
	struct wire_pkt wire;
};

enum tor_verdict {
	TOR_PASS, /* on to the next program, and at last to forwarding */
	TOR_DROP,
	TOR_TAKEN, /* the program sent something else, or will */
};

/* A match table or an array of registers, as a pipeline would hold it. */
struct tor_table {
	const char *name;
	uint64_t entries;
	uint32_t key_bits; /* 0: registers, found by index */
	uint32_t value_bits;
	uint32_t stages; /* lookups that cannot be made at the same time */
};

static inline uint64_t tor_table_bits(const struct tor_table *t)
{
	return t->entries * (t->key_bits + t->value_bits);
}

static inline const char *tor_table_kind(const struct tor_table *t)
{
	return t->key_bits ? "match" : "registers";
}

/* What a program of this switch declares; "forward" is the switch itself.
 * Returns how many; 0: there is no such program. */
unsigned tor_program_tables(const struct tor *tor, const char *name,
			    struct tor_table table[TOR_TABLE_MAX]);

struct tor_instance;

struct tor_program {
	const char *name;
	const char *help; /* one line */
	const char *const *counter_names;
	unsigned counter_count;

	/*
	 * Fills the zeroed state from the program's options; error_set() says
	 * what is wrong with them. The instance stands for the program in calls
	 * back.
	 */
	size_t state_bytes;
	int (*init)(void *state, struct tor_instance *self,
		    const char *options);
	/* Also after an error of init. */
	void (*release)(void *state);
	/* A packet; only `roce` ones unless wants_all. NULL: it has ends only.
	 */
	enum tor_verdict (*packet)(void *state, struct tor_pkt *pkt);
	bool wants_all;
	bool sees_ends; /* it stands for the wire; see tor_end.h */
	/* The packets of a batch, a control call or timers were handled; what
	 * is sent now leaves with them. NULL: nothing to do. */
	void (*batch_end)(void *state);
	/*
	 * Whether `packet` would do anything with RoCE packets between these
	 * addresses; NULL: it might. Packets that no program wants are not
	 * parsed. The answer becomes "yes" by control calls only: a "no" is
	 * remembered.
	 */
	bool (*wants)(const void *state, const uint8_t src_ip[16],
		      const uint8_t dst_ip[16]);
	/* New options for the running program; all or nothing. NULL: none. */
	int (*reload)(void *state, const char *options);
	/* Another control call; -EINVAL with words for an unknown verb. */
	int (*control)(void *state, const char *verb, struct json_out *out);
	/* A port is going away. */
	void (*port_gone)(void *state, const struct tor_port *port);
	/* Fills up to TOR_TABLE_MAX declarations; returns how many. */
	unsigned (*tables)(const void *state,
			   struct tor_table table[TOR_TABLE_MAX]);
};

/* NULL behind the last. */
extern const struct tor_program *const tor_programs[];
const struct tor_program *tor_program_find(const char *name);

/* ---- what a program may call -------------------------------------------- */

struct tor *tor_instance_tor(struct tor_instance *self);
/* The instance's counters, in the order of counter_names. */
uint64_t *tor_instance_counters(struct tor_instance *self);
struct timer_wheel *tor_timers(struct tor *tor);
/* The time of the batch. */
uint64_t tor_now_ns(const struct tor *tor);
/* Since when it has run without a pause: silence before that is nobody's. */
uint64_t tor_awake_ns(const struct tor *tor);
struct env *tor_env(struct tor *tor);

/* The port that a packet would leave through; NULL: all, or none. */
struct tor_port *tor_pkt_route(const struct tor_pkt *pkt);
/* An address of a program's ends, for as long as the switch lives: what comes
 * there and no program takes is dropped. -ENOSPC: TOR_OWN_MAX of them. */
int tor_own_add(struct tor *tor, const uint8_t ip[16]) MUST_CHECK;
bool tor_is_own(const struct tor *tor, const uint8_t ip[16]);
/* The port that the NIC of this queue pair is plugged into, which goes away
 * with it; NULL: it is not plugged into this switch. */
struct tor_port *tor_nic_of(const struct tor *tor, const uint8_t ip[16],
			    uint32_t qpn);
/* Where frames to this queue pair leave; NULL: not known. */
struct tor_port *tor_port_of(const struct tor *tor, const uint8_t ip[16],
			     uint32_t qpn);
/* Whether queue pairs with these numbers, at one address, are of one NIC. */
bool tor_is_same_slot(const struct tor *tor, uint32_t a, uint32_t b);
/* False: what is sent to this queue pair certainly reaches nobody. */
bool tor_reaches(const struct tor *tor, const uint8_t ip[16], uint32_t qpn);

/*
 * Sends a packet on to the programs behind this one and to forwarding. The
 * payload must not change until this returns. `in` is the port it counts as
 * having come from, or NULL.
 */
void tor_emit(struct tor_instance *self, struct tor_port *in,
	      const struct wire_pkt *wire);
/* The same for a frame as it is, RoCE or not. */
void tor_emit_frame(struct tor_instance *self, struct tor_port *in,
		    const uint8_t *frame, size_t len_bytes);

#endif
