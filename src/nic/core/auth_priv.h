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
/* Whether it has a key, and its path is one that needs it. */
bool auth_is_on(const struct nic_qp *qp);
/* The MAC of qp->out, whose payload is pointed to or in its place in
 * `frame`. */
void auth_sign(struct nic_qp *qp, const uint8_t *frame);
/* Does the packet come from the peer, and is its number right? The payload is
 * then a private copy, valid until the next call. */
bool auth_check(struct nic_qp *qp, struct wire_pkt *pkt);

#endif
