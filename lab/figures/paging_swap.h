/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of a swap area: which page is where in far memory. */
#ifndef AQ_RIG_PAGING_SWAP_H
#define AQ_RIG_PAGING_SWAP_H

#include "base/base.h"

#define PAGING_SWAP_NONE UINT32_MAX

struct paging_swap;

int paging_swap_open(uint32_t slots, struct paging_swap **out) MUST_CHECK;
/* NULL is allowed. */
void paging_swap_close(struct paging_swap *s);
/* PAGING_SWAP_NONE: all are used. */
uint32_t paging_swap_take(struct paging_swap *s);
void paging_swap_give(struct paging_swap *s, uint32_t slot);
/* More than half of it is used: then pages that come back give theirs up. */
bool paging_swap_is_full(const struct paging_swap *s);

#endif
