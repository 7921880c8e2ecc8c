/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire_cm_parse on any management datagram. What it accepts can be built again,
 * and the result parses to the same message. The input may be shorter than a
 * datagram; the rest is zero then, so that mutations reach the fields.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "wire/cm_msg.h"

static void check_ip(const struct wire_cm_msg *msg)
{
	uint8_t bytes[WIRE_CM_IP_BYTES];
	struct wire_cm_ip ip, again;

	if (wire_cm_ip_parse(msg->private_data, &ip))
		return;
	wire_cm_ip_build(&ip, bytes);
	ASSERT(!wire_cm_ip_parse(bytes, &again));
	ASSERT(!memcmp(&ip, &again, sizeof(ip)));
}

static void check(const uint8_t *data, size_t len_bytes)
{
	uint8_t mad[WIRE_MAD_BYTES];
	struct wire_cm_msg msg, again;

	if (wire_cm_parse(data, len_bytes, &msg))
		return;
	ASSERT(msg.private_len == wire_cm_private_bytes(msg.kind));
	ASSERT(msg.private_len >= WIRE_CM_IP_BYTES);
	wire_cm_build(&msg, mad);
	ASSERT(!wire_cm_parse(mad, sizeof(mad), &again));
	ASSERT(!memcmp(&msg, &again, sizeof(msg)));
	check_ip(&msg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
	uint8_t mad[WIRE_MAD_BYTES] = {1, 7, 2, 3};

	check(data, len_bytes);
	/* The header is right in every case, the kind among the known. */
	if (len_bytes > sizeof(mad) - 4)
		len_bytes = sizeof(mad) - 4;
	if (len_bytes)
		memcpy(mad + 4, data, len_bytes);
	mad[16] = 0;
	mad[17] = (uint8_t)(0x10 + mad[17] % 10);
	check(mad, sizeof(mad));
	return 0;
}
