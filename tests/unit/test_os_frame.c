/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums that a kernel left unfinished, and bytes that are no frame. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "os/board_frame.h"

enum {
	ETH = 14,
	IP4 = 20,
	IP6 = 40,
	TCP_HEAD = 20,
	DATA = 33, /* odd, as the last byte is summed alone */
};

static uint32_t add(uint32_t sum, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
	return sum;
}

static unsigned fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* A TCP or UDP packet whose checksum is the pseudo header's sum only. */
static size_t make(uint8_t *f, bool ipv6, uint8_t proto)
{
	size_t head = ipv6 ? IP6 : IP4, at = proto == 6 ? 16 : 6;
	size_t bytes = (proto == 6 ? TCP_HEAD : 8) + DATA;
	uint8_t *ip = f + ETH, *transport = ip + head;
	unsigned sum;

	memset(f, 0, ETH + head + bytes);
	f[12] = ipv6 ? 0x86 : 0x08;
	f[13] = ipv6 ? 0xdd : 0x00;
	if (ipv6) {
		ip[0] = 0x60;
		ip[5] = (uint8_t)bytes;
		ip[6] = proto;
		memset(ip + 8, 0x21, 32);
	} else {
		ip[0] = 0x45;
		ip[3] = (uint8_t)(head + bytes);
		ip[9] = proto;
		memset(ip + 12, 10, 8);
	}
	for (size_t i = 0; i < bytes; i++)
		transport[i] = (uint8_t)(i * 7);
	sum = fold(add(proto + (uint32_t)bytes, ip + (ipv6 ? 8 : 12),
		       ipv6 ? 32 : 8));
	transport[at] = (uint8_t)(sum >> 8);
	transport[at + 1] = (uint8_t)sum;
	return ETH + head + bytes;
}

static bool is_right(const uint8_t *f, size_t len, bool ipv6, uint8_t proto)
{
	size_t head = ipv6 ? IP6 : IP4;
	const uint8_t *ip = f + ETH;
	uint32_t sum = proto + (uint32_t)(len - ETH - head);

	sum = add(sum, ip + (ipv6 ? 8 : 12), ipv6 ? 32 : 8);
	return fold(add(sum, ip + head, len - ETH - head)) == 0xffff;
}

static void unfinished_ones_are_finished(void **state)
{
	for (unsigned i = 0; i < 4; i++) {
		uint8_t f[256], again[256];
		uint8_t proto = i & 1 ? 6 : 17;
		size_t len = make(f, i & 2, proto);

		assert_false(is_right(f, len, i & 2, proto));
		/* Padding behind the packet is not part of it. */
		memset(f + len, 0xee, 16);
		frame_mend(f, len + 16);
		assert_true(is_right(f, len, i & 2, proto));
		memcpy(again, f, sizeof(f));
		frame_mend(f, len);
		assert_memory_equal(f, again, sizeof(f));
	}
}

static void others_stay_as_they_are(void **state)
{
	uint8_t f[256], before[256];
	size_t len = make(f, false, 17);

	f[ETH + IP4 + 6] ^= 1; /* neither right nor unfinished */
	memcpy(before, f, sizeof(f));
	frame_mend(f, len);
	assert_memory_equal(f, before, len);
	len = make(f, false, 6);
	f[ETH + 6] = 0x20; /* a fragment */
	memcpy(before, f, sizeof(f));
	frame_mend(f, len);
	assert_memory_equal(f, before, len);
}

/* Every prefix of frames, and random bytes, in memory that ends with them. */
static void rubbish(void **state)
{
	struct rng rng;

	rng_init(&rng, 1);
	for (unsigned i = 0; i < 20000; i++) {
		uint8_t f[256], *exact;
		size_t len = make(f, i & 1, i & 2 ? 6 : 17);
		bool ipv4;

		len = rng_u64(&rng) % (len + 1);
		if (len < ETH)
			len = ETH;
		exact = malloc(len);
		assert_non_null(exact);
		memcpy(exact, f, len);
		for (unsigned k = 0; k < i % 4; k++)
			exact[rng_u64(&rng) % len] = (uint8_t)rng_u64(&rng);
		(void)frame_is_roce(exact, len, &ipv4);
		frame_mend(exact, len);
		free(exact);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unfinished_ones_are_finished),
		cmocka_unit_test(others_stay_as_they_are),
		cmocka_unit_test(rubbish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
