/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots: which NIC of this host is which. A slot is the top of every queue pair
 * number of its NIC and is leased by binding a socket in the rack's runtime
 * directory: only processes that may enter it can find, or pretend to be, a NIC
 * of the rack. The lease ends with its owner (rack_socket.h).
 */
#ifndef AQ_SLOT_H
#define AQ_SLOT_H

#include "base/rack_socket.h"

struct ucred;

/* Tries all slots beginning at `start`; *fd listens. -EUSERS: all taken. */
int slot_lease(const struct rack_sockets *r, const uint8_t ip[4],
	       uint32_t start, uint32_t *slot, int *fd) MUST_CHECK;
/* This one. -EADDRINUSE: it is taken. */
int slot_take(const struct rack_sockets *r, const uint8_t ip[4], uint32_t slot,
	      int *fd) MUST_CHECK;
/* Closes fd as well. */
void slot_release(const struct rack_sockets *r, const uint8_t ip[4],
		  uint32_t slot, int fd);

/* Connects without waiting for accept. -ECONNREFUSED: the slot is free. */
int slot_connect(const struct rack_sockets *r, const uint8_t ip[4],
		 uint32_t slot, int *fd) MUST_CHECK;

/* Whether the slot was leased by this process, as it claims: asks the kernel
 * which process listens there. */
bool slot_is_of(const struct rack_sockets *r, const uint8_t ip[4],
		uint32_t slot, const struct ucred *who);

/* The name of a switch process, held and found the same way. -EADDRINUSE: there
 * is one; -ECONNREFUSED: there is none. */
int slot_switch_listen(const struct rack_sockets *r, const char *name,
		       int *fd) MUST_CHECK;
void slot_switch_release(const struct rack_sockets *r, const char *name,
			 int fd);
int slot_switch_connect(const struct rack_sockets *r, const char *name,
			int *fd) MUST_CHECK;

#endif
