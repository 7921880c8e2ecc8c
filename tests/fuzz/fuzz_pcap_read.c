/* SPDX-License-Identifier: Apache-2.0 */
/* The pcap reader on any file: every frame it reports lies inside. */
#include "edm/pcap_read.h"
#include "edm/phy.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
	struct edm_pcap p;
	uint64_t end = 0;

	if (edm_pcap_parse("input", data, len_bytes, &p))
		return 0;
	for (uint32_t i = 0; i < p.frames; i++) {
		const struct edm_pcap_frame *f = &p.frame[i];

		ASSERT(f->offset >= end);
		ASSERT(f->len_bytes <= EDM_FRAME_MAX);
		end = f->offset + f->len_bytes;
		ASSERT(end <= len_bytes);
	}
	edm_pcap_release(&p);
	return 0;
}
