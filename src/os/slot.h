/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots: which NIC of this host is which. A slot is the top of every queue pair
 * number of its NIC and is leased by binding an abstract unix socket, so the
 * kernel keeps it exclusive and gives it back when its owner dies.
 */
#ifndef AQ_SLOT_H
#define AQ_SLOT_H

#include "base.h"

/* Tries all slots beginning at `start`; *fd listens. -EUSERS: all taken. */
int slot_lease(const char *rack, const uint8_t ip[4], uint32_t start,
	       uint32_t *slot, int *fd) MUST_CHECK;

/* Connects without waiting for the owner to accept. -ECONNREFUSED: nobody has
 * this slot. */
int slot_connect(const char *rack, const uint8_t ip[4], uint32_t slot,
		 int *fd) MUST_CHECK;

/* The name of a switch process, held and found the same way. -EADDRINUSE: there
 * is one; -ECONNREFUSED: there is none. */
int slot_switch_listen(const char *rack, const char *name, int *fd) MUST_CHECK;
int slot_switch_connect(const char *rack, const char *name, int *fd) MUST_CHECK;

#endif
