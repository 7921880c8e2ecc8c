/* SPDX-License-Identifier: Apache-2.0 */
/* CM messages: places of the fields by the tables of the standard, both ways
 * for every kind, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "wire/cm_msg.h"

enum {
	DATA = 24, /* the MAD's header */
};

static void fill_all(struct wire_cm_msg *m, uint16_t kind)
{
	memset(m, 0, sizeof(*m));
	m->kind = kind;
	m->tid = 0x0102030405060708ull;
	m->private_len = wire_cm_private_bytes(kind);
	for (unsigned i = 0; i < m->private_len; i++)
		m->private_data[i] = (uint8_t)(i * 7 + 1);
	m->local_id = 0xa1b2c3d4;
	if (kind != WIRE_CM_REQ && kind != WIRE_CM_SIDR_REQ &&
	    kind != WIRE_CM_SIDR_REP)
		m->remote_id = 0x11223344;
}

static void fill_req(struct wire_cm_msg *m)
{
	fill_all(m, WIRE_CM_REQ);
	m->service_id = 0x0000000001061d2full;
	m->ca_guid = 0x1122334455667788ull;
	m->qkey = 0x99aabbcc;
	m->qpn = 0x123456;
	m->psn = 0x654321;
	m->pkey = 0xffff;
	m->responder_resources = 5;
	m->initiator_depth = 6;
	m->transport = 1;
	m->flow_control = true;
	m->srq = true;
	m->retry_count = 7;
	m->rnr_retry_count = 6;
	m->mtu = 5;
	m->remote_timeout = 20;
	m->local_timeout = 19;
	m->max_retries = 15;
	m->ece_vendor = 0xabcdef;
	m->ece_options = 0x10203040;
	m->path = (struct wire_cm_path){
		.slid = 0xffff,
		.dlid = 0xfffe,
		.flow_label = 0xedcba,
		.rate = 0x25,
		.traffic_class = 0x88,
		.hop_limit = 64,
		.sl = 9,
		.subnet_local = true,
		.ack_timeout = 18,
	};
	memset(m->path.sgid, 0x51, 16);
	memset(m->path.dgid, 0x61, 16);
}

static void round_trip(const struct wire_cm_msg *m, uint8_t *mad)
{
	struct wire_cm_msg again;

	wire_cm_build(m, mad);
	assert_int_equal(wire_cm_parse(mad, WIRE_MAD_BYTES, &again), 0);
	assert_memory_equal(m, &again, sizeof(again));
}

static void test_req_places(void **state)
{
	static const uint8_t header[] = {1, 7, 2, 3, 0, 0, 0, 0, 1,
					 2, 3, 4, 5, 6, 7, 8, 0, 0x10};
	uint8_t mad[WIRE_MAD_BYTES];
	const uint8_t *d = mad + DATA;
	struct wire_cm_msg m;

	fill_req(&m);
	round_trip(&m, mad);
	assert_memory_equal(mad, header, sizeof(header));
	assert_memory_equal(mad + 20, "\x10\x20\x30\x40", 4);
	assert_memory_equal(d, "\xa1\xb2\xc3\xd4\0\xab\xcd\xef", 8);
	assert_memory_equal(d + 8, "\0\0\0\0\x01\x06\x1d\x2f", 8);
	assert_memory_equal(d + 16, "\x11\x22\x33\x44\x55\x66\x77\x88", 8);
	assert_memory_equal(d + 28, "\x99\xaa\xbb\xcc\x12\x34\x56\x05", 8);
	assert_int_equal(d[39], 6);
	assert_int_equal(d[43], 20 << 3 | 1 << 1 | 1);
	assert_memory_equal(d + 44, "\x65\x43\x21", 3);
	assert_int_equal(d[47], 19 << 3 | 7);
	assert_memory_equal(d + 48, "\xff\xff", 2);
	assert_int_equal(d[50], 5 << 4 | 6);
	assert_int_equal(d[51], 15 << 4 | 1 << 3);
	assert_memory_equal(d + 52, "\xff\xff\xff\xfe\x51", 5);
	assert_int_equal(d[72], 0x61);
	assert_memory_equal(d + 88, "\xed\xcb\xa0\x25\x88\x40", 6);
	assert_int_equal(d[94], 9 << 4 | 1 << 3);
	assert_int_equal(d[95], 18 << 3);
	assert_int_equal(d[139], 0); /* the alternate path */
	assert_int_equal(d[140], 1);
	assert_int_equal(m.private_len, 92);
}

static void test_rep_places(void **state)
{
	uint8_t mad[WIRE_MAD_BYTES];
	const uint8_t *d = mad + DATA;
	struct wire_cm_msg m;

	fill_all(&m, WIRE_CM_REP);
	m.qkey = 0x01020304;
	m.qpn = 0x123456;
	m.psn = 0xfedcba;
	m.responder_resources = 3;
	m.initiator_depth = 4;
	m.ack_delay = 15;
	m.failover = 2;
	m.flow_control = true;
	m.rnr_retry_count = 7;
	m.srq = true;
	m.ca_guid = 0x1020304050607080ull;
	m.ece_vendor = 0x0a0b0c;
	round_trip(&m, mad);
	assert_memory_equal(d, "\xa1\xb2\xc3\xd4\x11\x22\x33\x44", 8);
	assert_memory_equal(d + 12, "\x12\x34\x56\x0c", 4);
	assert_int_equal(d[19], 0x0b);
	assert_memory_equal(d + 20, "\xfe\xdc\xba\x0a\x03\x04", 6);
	assert_int_equal(d[26], 15 << 3 | 2 << 1 | 1);
	assert_int_equal(d[27], 7 << 5 | 1 << 4);
	assert_int_equal(d[28], 0x10);
	assert_int_equal(d[36], 1);
	assert_int_equal(m.private_len, 196);
}

static void test_others(void **state)
{
	uint8_t mad[WIRE_MAD_BYTES];
	const uint8_t *d = mad + DATA;
	struct wire_cm_msg m;

	fill_all(&m, WIRE_CM_REJ);
	m.about = WIRE_CM_ABOUT_REP;
	m.reason = 28;
	m.ari_len = 3;
	memcpy(m.ari, "abc", 3);
	round_trip(&m, mad);
	assert_memory_equal(d + 8,
			    "\x40\x06\x00\x1c"
			    "abc\0",
			    8);
	assert_int_equal(d[84], 1);

	fill_all(&m, WIRE_CM_MRA);
	m.about = WIRE_CM_ABOUT_REQ;
	m.service_timeout = 24;
	round_trip(&m, mad);
	assert_int_equal(d[9], 24 << 3);

	fill_all(&m, WIRE_CM_DREQ);
	m.qpn = 0xabcdef;
	round_trip(&m, mad);
	assert_memory_equal(d + 8, "\xab\xcd\xef\0\x01", 5);

	fill_all(&m, WIRE_CM_RTU);
	round_trip(&m, mad);
	fill_all(&m, WIRE_CM_DREP);
	round_trip(&m, mad);
	assert_int_equal(mad[17], 0x16);
}

static void test_sidr(void **state)
{
	uint8_t mad[WIRE_MAD_BYTES];
	const uint8_t *d = mad + DATA;
	struct wire_cm_msg m;

	fill_all(&m, WIRE_CM_SIDR_REQ);
	m.pkey = 0xffff;
	m.service_id = 0x01111d2f;
	round_trip(&m, mad);
	assert_memory_equal(d + 4, "\xff\xff\0\0\0\0\0\0\x01\x11\x1d\x2f\x01",
			    13);

	fill_all(&m, WIRE_CM_SIDR_REP);
	m.status = 2;
	m.qpn = 0x123456;
	m.qkey = 0x01234567;
	m.service_id = 0x01111d2f;
	round_trip(&m, mad);
	assert_memory_equal(d + 4, "\x02\0\0\0\x12\x34\x56\0", 8);
	assert_memory_equal(d + 20, "\x01\x23\x45\x67", 4);
	assert_int_equal(d[96], 1);
}

static void test_refused(void **state)
{
	uint8_t mad[WIRE_MAD_BYTES];
	static const struct {
		unsigned at;
		uint8_t value;
	} bad[] = {{0, 2},  {1, 3},	{2, 1},	   {3, 1},
		   {16, 1}, {17, 0x19}, {17, 0x0f}};
	struct wire_cm_msg m;

	fill_req(&m);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		wire_cm_build(&m, mad);
		mad[bad[i].at] = bad[i].value;
		assert_int_not_equal(wire_cm_parse(mad, sizeof(mad), &m), 0);
	}
	wire_cm_build(&m, mad);
	assert_int_not_equal(wire_cm_parse(mad, sizeof(mad) - 1, &m), 0);
	fill_all(&m, WIRE_CM_REJ);
	wire_cm_build(&m, mad);
	mad[DATA + 9] = 73 << 1; /* more than there is room for */
	assert_int_not_equal(wire_cm_parse(mad, sizeof(mad), &m), 0);
	assert_int_equal(wire_cm_private_bytes(0x19), 0);
	assert_int_equal(wire_cm_private_bytes(0), 0);
}

static void test_ip(void **state)
{
	struct wire_cm_ip ip = {.port = 0x1234}, again;
	uint8_t bytes[WIRE_CM_IP_BYTES];
	static const uint8_t v4[16] = {[10] = 0xff, 0xff, 192, 0, 2, 1};

	memcpy(ip.src, v4, 16);
	memcpy(ip.dst, v4, 16);
	wire_cm_ip_build(&ip, bytes);
	assert_memory_equal(bytes, "\0\x40\x12\x34\0\0\0\0\0\0\0\0\0\0\0\0",
			    16);
	assert_memory_equal(bytes + 16, "\xc0\0\x02\x01", 4);
	assert_int_equal(wire_cm_ip_parse(bytes, &again), 0);
	assert_memory_equal(&ip, &again, sizeof(ip));
	ip.src[0] = 0xfd;
	ip.dst[0] = 0xfd;
	wire_cm_ip_build(&ip, bytes);
	assert_int_equal(bytes[1], 0x60);
	assert_int_equal(wire_cm_ip_parse(bytes, &again), 0);
	assert_memory_equal(&ip, &again, sizeof(ip));
	bytes[1] = 0x50;
	assert_int_not_equal(wire_cm_ip_parse(bytes, &again), 0);
	bytes[1] = 0x60;
	bytes[0] = 1;
	assert_int_not_equal(wire_cm_ip_parse(bytes, &again), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_req_places),
		cmocka_unit_test(test_rep_places),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_sidr),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_ip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
