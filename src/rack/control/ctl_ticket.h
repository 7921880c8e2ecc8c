/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tickets: what a controller signs and a memory node believes, so that clients
 * of an object come and go while the controller is away. A ticket opens the
 * blocks of one object of one tenant, to read or to change them, until its end,
 * over connections that were made with the token for which it was signed: so a
 * token that is taken back ends its tickets with its connections.
 *
 * Ed25519: nodes hold public keys only, so none of them can make a ticket for
 * another one. Nothing here does I/O or looks at a clock.
 */
#ifndef AQ_CTL_TICKET_H
#define AQ_CTL_TICKET_H

#include <jansson.h>

#include "base/base.h"

enum {
	CTL_TICKET_BYTES = 128,
	CTL_TICKET_TEXT = 2 * CTL_TICKET_BYTES + 1, /* as hex, with the NUL */
	CTL_TICKET_TENANT_MAX = 32,
	CTL_TICKET_BY_BYTES = 6,
	CTL_TICKET_SEED_BYTES = 32,
	CTL_TICKET_KEY_BYTES = 32,
	CTL_TICKET_KEYS_MAX = 4,
	CTL_TICKET_SLACK_S = 60, /* that clocks of a rack may differ */
};

enum ctl_ticket_right {
	CTL_TICKET_READ = 1,
	CTL_TICKET_CHANGE = 2,
};

enum ctl_ticket_kind {
	CTL_TICKET_FILE = 1,
	CTL_TICKET_QUEUE = 2,
	CTL_TICKET_EKV = 3,
};

struct ctl_ticket {
	uint32_t key_id;
	uint64_t object;
	uint64_t end_s; /* seconds since 1970 */
	uint8_t rights; /* of enum ctl_ticket_right */
	uint8_t kind;	/* enum ctl_ticket_kind */
	/* How the hash of the token begins for which it was signed; zeros: for
	 * any of the tenant's. */
	uint8_t by[CTL_TICKET_BY_BYTES];
	char tenant[CTL_TICKET_TENANT_MAX + 1];
};

/* The public keys that a node knows. */
struct ctl_ticket_keys {
	unsigned count;
	struct {
		uint32_t id;
		uint8_t key[CTL_TICKET_KEY_BYTES];
	} key[CTL_TICKET_KEYS_MAX];
};

/* The public key of a seed, which is all that a signer must keep. */
void ctl_ticket_public(const uint8_t seed[CTL_TICKET_SEED_BYTES],
		       uint8_t out[CTL_TICKET_KEY_BYTES]);
/* The ticket, signed with the key of the seed; t->key_id names that key. */
void ctl_ticket_sign(const struct ctl_ticket *t,
		     const uint8_t seed[CTL_TICKET_SEED_BYTES],
		     uint8_t out[CTL_TICKET_BYTES]);

/*
 * Whether it is good at this time of day. Only then *out is written. -EPROTO:
 * these bytes are no ticket; -ENOKEY: signed with a key that is not known here;
 * -EKEYREJECTED: not signed with that key; -EKEYEXPIRED: it has ended.
 * error_last() has the words.
 */
int ctl_ticket_verify(const uint8_t bytes[CTL_TICKET_BYTES],
		      const struct ctl_ticket_keys *keys, uint64_t wall_s,
		      struct ctl_ticket *out) MUST_CHECK;

/* Whether it opens something over a connection of that token. */
bool ctl_ticket_is_of(const struct ctl_ticket *t,
		      const uint8_t by[CTL_TICKET_BY_BYTES]);

/* Keys as a controller tells them: [{"id": 3, "key": "hex"}, ...]. -EPROTO: it
 * is no such list, and *out is as before. */
int ctl_ticket_keys_parse(const json_t *list,
			  struct ctl_ticket_keys *out) MUST_CHECK;

#endif
