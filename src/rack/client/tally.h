/* SPDX-License-Identifier: Apache-2.0 */
/* Tallies of clients of a rack, for rooms that have operations of their own:
 * `aquifer top` and the metrics of memory nodes show them. */
#ifndef AQ_CLIENT_TALLY_H
#define AQ_CLIENT_TALLY_H

#include "base/tally.h"

struct aq_rack;

/* For one thread at a time, named by what the operations work on; any thread
 * may make one. NULL: no memory, and nothing is counted. */
struct tally *client_tally_open(struct aq_rack *rack, enum tally_kind kind,
				const char *object);
/* Before the rack is closed. NULL is allowed. */
void client_tally_close(struct aq_rack *rack, struct tally *tally);

#endif
