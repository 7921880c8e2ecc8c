/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NIC's end of a cable to a switch, without a NIC: whole frames in and out,
 * to measure or test a switch. One thread; the owner polls and never sleeps on
 * the cable.
 */
#ifndef AQ_PLUG_H
#define AQ_PLUG_H

#include "base/base.h"

struct plug;

/* Leases this slot of the address, plugs into the switch as its NIC, and waits
 * up to a second for its welcome. */
int plug_open(const char *rack, const char *name, uint32_t slot,
	      const uint8_t ip[16], struct plug **out) MUST_CHECK;
void plug_close(struct plug *p);

/* False: no room. */
bool plug_tx(struct plug *p, const uint8_t *frame, size_t len_bytes);
/* Call it after a batch: wakes a switch that sleeps. */
void plug_flush(struct plug *p);
/* The oldest frame, valid until plug_next; NULL: none. */
const uint8_t *plug_rx(struct plug *p, size_t *len_bytes);
void plug_next(struct plug *p);
/* Call it after a batch: the switch may then use the room again. */
void plug_done(struct plug *p);

#endif
