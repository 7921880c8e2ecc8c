/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connections that the control plane declared to a program, found by the
 * packets of either direction. What a program knows of a connection is a struct
 * of its own that begins with a struct tor_conn.
 */
#ifndef AQ_TOR_CONN_TABLE_H
#define AQ_TOR_CONN_TABLE_H

#include "base/base.h"
#include "wire/wire.h"
#include "words.h"

/* Which way a packet goes: to the server, or to the client. */
enum tor_way {
	TOR_REQUEST,
	TOR_REPLY,
	TOR_WAYS,
};

struct tor_conn {
	bool used;
	uint8_t client_ip[16];
	uint8_t server_ip[16];
	uint32_t qpn[TOR_WAYS];	 /* where the packets of each way go to */
	uint32_t next[TOR_WAYS]; /* index + 1 of the next in a hash chain */
};

struct tor_conns {
	uint8_t *first; /* the array of the program's own structs */
	size_t conn_bytes;
	uint32_t count;
	uint32_t hash_mask;
	uint32_t *heads[TOR_WAYS]; /* of the hash chains, index + 1 */
};

/* Room for `count` structs of that size; -ENOMEM leaves something that can be
 * released. */
int tor_conns_init(struct tor_conns *t, uint32_t count,
		   size_t conn_bytes) MUST_CHECK;
void tor_conns_release(struct tor_conns *t);

/* The program's struct of the connection that the packet is of, or NULL. */
void *tor_conns_find(const struct tor_conns *t, enum tor_way way,
		     const struct wire_pkt *w);
/* The one with these addresses and both these numbers, or NULL: a queue pair
 * may have another connection by now. */
void *tor_conns_same(const struct tor_conns *t, const struct tor_conn *like);

/* Where another connection can stand. -EEXIST: one of its queue pairs has one;
 * -ENOSPC. */
int tor_conns_place(const struct tor_conns *t, const struct tor_conn *like,
		    uint32_t *index) MUST_CHECK;
/* The struct at that place, with its addresses and numbers, can be found from
 * now on. */
void tor_conns_link(struct tor_conns *t, uint32_t index);
void tor_conns_unlink(struct tor_conns *t, struct tor_conn *c);

/* Takes server, client, server_qpn and client_qpn from a control call. */
void tor_conn_read(struct tor_words *p, struct tor_conn *c);
/* The words for an error of place, remove and their kin, which it returns. */
int tor_conn_error(const char *program, int err);

#endif
