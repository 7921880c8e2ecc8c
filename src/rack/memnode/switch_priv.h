/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a node talks to its switch: the address by which the switch knows the
 * node, calls, and the shared connection that the switch uses. declare.c
 * decides what the switch is told.
 */
#ifndef AQ_MEM_SWITCH_PRIV_H
#define AQ_MEM_SWITCH_PRIV_H

#include <arpa/inet.h>

#include "mem_priv.h"

/* ---- address.c ---------------------------------------------------------- */

enum {
	ADDRESS_TEXT = INET6_ADDRSTRLEN
};
/* Returns out. */
const char *address_text(const uint8_t ip[16], char out[ADDRESS_TEXT]);
bool address_is_ipv4(const uint8_t ip[16]);
/* Our address of that kind, and its place in the NIC's table. -ENODEV. */
int address_own(struct mem_node *node, bool ipv4, uint8_t *index,
		union ibv_gid *gid) MUST_CHECK;
/* The address by which the switch knows this node: IPv4, else IPv6. */
int address_first(struct mem_node *node, uint8_t *index,
		  union ibv_gid *gid) MUST_CHECK;
int address_server(struct mem_node *node, char out[ADDRESS_TEXT]) MUST_CHECK;

/* ---- switch_late.c: what has ended ------------------------------------------
 */

/* Tells the switch of something that ended; true: it no longer knows it. */
bool switch_tell_end(struct mem_node *node, const char *line) MUST_CHECK;
/* Called with the lock held. */
void switch_tell_later(struct mem_node *node, const char *line);
void switch_tell_late(struct mem_node *node);

/* ---- switch_shared.c: the connection that the switch works through ------- */

/* Makes a new one in the place of the old one, and tells the switch. */
int switch_shared_open(struct mem_node *node) MUST_CHECK;
void switch_shared_close(struct mem_node *node);
/* Asks whether the switch has given our shared connection up: then nothing
 * works until it has a new one. */
bool switch_shared_is_dead(struct mem_node *node);

/* ---- switch_walk.c: walks that the switch carries on to us ----------------
 */

/* The switch's program `walk` knows nothing of us. */
int switch_walk_open(struct mem_node *node) MUST_CHECK;
void switch_walk_close(struct mem_node *node);
/* Declares the region, if it is a piece. Without it walks work as well. */
int switch_walk_piece(struct mem_node *node, struct mem_region *r) MUST_CHECK;
/* Called without the lock; the region is busy. */
void switch_walk_gone(struct mem_node *node, const struct mem_region *r);
/* Every look at the switch: regions that it did not take yet. */
void switch_walk_late(struct mem_node *node);

#endif
