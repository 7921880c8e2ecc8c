/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the Ethernet frames of a classic pcap file, of either byte order, with
 * times in micro- or nanoseconds. An error names the offset where it was found.
 */
#ifndef AQ_EDM_PCAP_READ_H
#define AQ_EDM_PCAP_READ_H

#include "base/base.h"

enum {
	EDM_PCAP_FRAMES_MAX = 1 << 22,
	EDM_PCAP_BYTES_MAX = 1 << 30,
};

struct edm_pcap_frame {
	uint64_t offset; /* of the first byte, in the file */
	uint64_t time_ns;
	uint32_t len_bytes;
};

struct edm_pcap {
	uint8_t *bytes; /* the file; owned */
	size_t len_bytes;
	struct edm_pcap_frame *frame; /* owned */
	uint32_t frames;
};

/*
 * Finds the frames of a file that is in memory; `bytes` stay the caller's, and
 * out->bytes is NULL. `name` is for the words of an error: -EBADMSG for a file
 * that is not pcap, cut off or inconsistent, -EPROTONOSUPPORT for one without
 * Ethernet frames, -EMSGSIZE for a frame or file that is too large.
 */
int edm_pcap_parse(const char *name, const uint8_t *bytes, size_t len_bytes,
		   struct edm_pcap *out) MUST_CHECK;
int edm_pcap_read(const char *path, struct edm_pcap *out) MUST_CHECK;
void edm_pcap_release(struct edm_pcap *p);

#endif
