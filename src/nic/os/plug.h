/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NIC's end of a cable to a switch, without a NIC: whole frames in and out,
 * for who measures or tests a switch. One thread; the owner polls and never
 * sleeps on the cable.
 */
#ifndef AQ_PLUG_H
#define AQ_PLUG_H

#include "base/base.h"

struct os_plug;

/* Leases this slot of the address, plugs into the switch as its NIC, and waits
 * up to a second for its welcome. */
int os_plug_open(const char *rack, const char *name, uint32_t slot,
		 const uint8_t ip[16], struct os_plug **out) MUST_CHECK;
void os_plug_close(struct os_plug *p);

/* False: no room. */
bool os_plug_tx(struct os_plug *p, const uint8_t *frame, size_t len_bytes);
/* After a batch: wakes a switch that sleeps. */
void os_plug_flush(struct os_plug *p);
/* The oldest frame, valid until os_plug_next; NULL: none. */
const uint8_t *os_plug_rx(struct os_plug *p, size_t *len_bytes);
void os_plug_next(struct os_plug *p);
/* After a batch: the switch may use the room again. */
void os_plug_done(struct os_plug *p);

#endif
