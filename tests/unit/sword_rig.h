/* SPDX-License-Identifier: Apache-2.0 */
/* A switch with SwordBox, three clients and a server, for tests that look at
 * each packet. */
#ifndef AQ_TEST_SWORD_RIG_H
#define AQ_TEST_SWORD_RIG_H

#include "tor_rig.h"

#include <stdio.h>

#include "base/error.h"
#include "base/json_out.h"
#include "switch/sword.h"

enum {
	SERVER = 9, /* host, and the port behind it */
	SERVER_PORT = 3,
	OWN = 250,
	SHARED_QPN = 0x77,
	OWN_QPN = 0x800001,
	RKEY = 0x1234,
};

#define VA 0x10000ull

static inline void tell(struct rig *r, int want, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static inline void tell(struct rig *r, int want, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (tor_control(r->tor, text, NULL) != want)
		fail_msg("%s: %s", text, error_last());
}

static inline void declare_conn(struct rig *r, unsigned client, uint32_t psn)
{
	tell(r, 0,
	     "swordbox conn server=10.0.0.%d client=10.0.0.%u client_qpn=%u "
	     "server_qpn=%u psn=%u",
	     SERVER, client, 100 + client, 200 + client, psn);
}

/* Hosts 1, 2, 3 at ports 0, 1, 2; the server at port 3. */
static inline struct rig *make(const char *options, unsigned clients)
{
	struct rig *r = rig_create(4, 24);
	struct wire_pkt pkt = {.opcode = WIRE_UD_SEND_ONLY};

	for (unsigned i = 0; i < 4; i++) {
		rig_addresses(&pkt, (uint8_t)(i == 3 ? SERVER : i + 1), 99);
		rig_send(r, i, &pkt);
	}
	rig_clear(r);
	assert_int_equal(tor_program_add(r->tor, "swordbox", options), 0);
	tell(r, 0,
	     "swordbox server ip=10.0.0.%d own_ip=10.0.0.%d qpn=%d own_qpn=%d "
	     "psn=16777215",
	     SERVER, OWN, SHARED_QPN, OWN_QPN);
	tell(r, 0, "swordbox region server=10.0.0.%d rkey=%d va=%llu len=64",
	     SERVER, RKEY, VA);
	for (unsigned i = 1; i <= clients; i++)
		declare_conn(r, i, 1000 * i);
	tell(r, 0, "swordbox ready");
	return r;
}

static inline struct wire_pkt request(unsigned client, uint8_t opcode,
				      uint32_t psn)
{
	struct wire_pkt pkt = {.opcode = opcode,
			       .psn = psn,
			       .dest_qpn = 200 + client,
			       .rkey = RKEY,
			       .va = VA};

	rig_addresses(&pkt, (uint8_t)client, SERVER);
	return pkt;
}

static inline void send_cas(struct rig *r, unsigned client, uint32_t psn,
			    uint64_t compare, uint64_t swap)
{
	struct wire_pkt pkt = request(client, WIRE_RC_CAS, psn);

	pkt.atomic = (struct atomic_op){.compare = compare,
					.swap_add = swap,
					.swap_mask = UINT64_MAX,
					.compare_mask = UINT64_MAX};
	rig_send(r, client - 1, &pkt);
}

/* From the server: to a client's queue pair (client > 0), or to the shared
 * connection. */
static inline void send_reply(struct rig *r, unsigned client, uint8_t opcode,
			      uint32_t psn, uint8_t syndrome,
			      const void *payload)
{
	struct wire_pkt pkt = {.opcode = opcode,
			       .psn = psn,
			       .syndrome = syndrome,
			       .msn = psn,
			       .dest_qpn = client ? 100 + client : OWN_QPN,
			       .payload = payload,
			       .payload_len = payload ? 8 : 0};

	rig_addresses(&pkt, SERVER, (uint8_t)(client ? client : OWN));
	rig_send(r, SERVER_PORT, &pkt);
}

static inline struct wire_pkt at_server(struct rig *r)
{
	struct wire_pkt pkt;

	assert_int_equal(r->ports[SERVER_PORT].got, 1);
	pkt = rig_got(r, SERVER_PORT, 0);
	return pkt;
}

static inline void move_conn(struct rig *r, unsigned client, uint32_t psn)
{
	tell(r, 0,
	     "swordbox conn server=10.0.0.%d client=10.0.0.%u client_qpn=%u "
	     "server_qpn=%u psn=%u moved=1",
	     SERVER, client, 100 + client, 200 + client, psn);
}

#endif
