/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and recognizes hails; who sends and answers them is elsewhere. */
#include "hail.h"

static const uint8_t magic[3] = {'A', 'Q', 1};

void hail_init(struct hail *h, uint8_t index, uint64_t nonce)
{
	*h = (struct hail){
		.opcode = HAIL_OPCODE,
		.kind = HAIL_ASK,
		.index = index,
		.nonce = be64_put(nonce),
	};
	memcpy(h->magic, magic, sizeof(magic));
}

bool hail_parse(const void *bytes, size_t len_bytes, enum hail_kind kind,
		struct hail *out)
{
	static const uint8_t none[3];
	struct hail h;

	if (len_bytes < sizeof(h))
		return false;
	memcpy(&h, bytes, sizeof(h));
	if (h.opcode != HAIL_OPCODE || h.kind != kind ||
	    memcmp(h.magic, magic, sizeof(magic)) ||
	    memcmp(h.qpn, none, sizeof(none)))
		return false;
	*out = h;
	return true;
}
