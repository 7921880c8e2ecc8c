/* SPDX-License-Identifier: Apache-2.0 */
/* Captures frames into a pcap file that tshark and Wireshark read. */
#ifndef AQ_PCAP_H
#define AQ_PCAP_H

#include "base/base.h"

struct pcap;

/* "%p" in the path becomes the process id. An old file is replaced. */
int pcap_create(const char *path, struct pcap **out) MUST_CHECK;
void pcap_destroy(struct pcap *p);
/* Written at once, so that nothing is lost when the process dies. */
void pcap_write(struct pcap *p, const uint8_t *frame, size_t len_bytes);

#endif
