/* SPDX-License-Identifier: Apache-2.0 */
/* Packets with a MAC. */
#ifndef AQ_NIC_AUTH_PRIV_H
#define AQ_NIC_AUTH_PRIV_H

#include "base/base.h"

struct nic_qp;
struct wire_pkt;

/* The queue pair has a key; what modify set (its mask) is in place. */
void auth_start(struct nic_qp *qp, int mask);
void auth_forget(struct nic_qp *qp);
/* It has a key, and its way is one where it is needed. */
bool auth_is_on(const struct nic_qp *qp);
/* The MAC of qp->out, whose payload is pointed to or in its place in
 * `frame`. */
void auth_sign(struct nic_qp *qp, const uint8_t *frame);
/* Is it of the peer, and the one that its number says? The payload is then a
 * copy that nobody else can change, until the next call. */
bool auth_check(struct nic_qp *qp, struct wire_pkt *pkt);

#endif
