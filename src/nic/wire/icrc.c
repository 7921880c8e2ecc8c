/* SPDX-License-Identifier: Apache-2.0 */
/* The invariant CRC of a whole IP packet that lies in memory. */
#include "base/crc.h"
#include "wire_priv.h"

uint32_t wire_icrc(const uint8_t *ip, size_t len_bytes)
{
	uint32_t state;
	size_t fixed_bytes;

	if (ip[0] >> 4 == 4) {
		struct wire_fixed4 h;

		ASSERT(len_bytes >= sizeof(h));
		memcpy(&h, ip, sizeof(h));
		wire_icrc_mask4(&h);
		state = crc32_raw(WIRE_ICRC_SEED, &h, sizeof(h));
		fixed_bytes = sizeof(h);
	} else {
		struct wire_fixed6 h;

		ASSERT(len_bytes >= sizeof(h));
		memcpy(&h, ip, sizeof(h));
		wire_icrc_mask6(&h);
		state = crc32_raw(WIRE_ICRC_SEED, &h, sizeof(h));
		fixed_bytes = sizeof(h);
	}
	return ~crc32_raw(state, ip + fixed_bytes, len_bytes - fixed_bytes);
}
