/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of the switch that hosts can find: it answers ARP and neighbour
 * discovery for them, so that a machine with any NIC can have a connection
 * whose other end is the switch (tor_end.h). Frames of ends then have the
 * switch's Ethernet address, and that of their destination as far as it was
 * learned.
 */
#ifndef AQ_TOR_OWN_ADDRESS_H
#define AQ_TOR_OWN_ADDRESS_H

#include "tor_program.h"

/* Whether the frame asked for an address of the switch, and was answered. */
bool own_address_answer(struct tor_port *port, const uint8_t *frame,
			size_t len_bytes);
/* Ethernet addresses of what an end sends, where they are not set. */
void own_address_fill(const struct tor *tor, struct wire_pkt *w);

#endif
