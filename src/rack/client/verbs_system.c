/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices of the system's libibverbs: hardware. The library is looked for at
 * run time, so that nobody needs it who has none; its calls do not meet those
 * of the soft NIC, whose symbols are ours alone.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "verbs_api.h"

#define LIBRARY "libibverbs.so.1"

enum {
	PORT = 1,
	GID_MAX = 256,
	NAMES_MAX = 200,
};

/* What is needed of it beside the table. */
struct extra {
	const char *(*get_device_name)(struct ibv_device *device);
	int (*query_gid_ex)(struct ibv_context *context, uint32_t port,
			    uint32_t index, struct ibv_gid_entry *entry,
			    uint32_t flags, size_t entry_bytes);
};

/* Goes through the context's own table. */
static int system_query_port(struct ibv_context *context, uint8_t port,
			     struct ibv_port_attr *attr)
{
	return ibv_query_port(context, port, attr);
}

static bool find(void *library, const char *name, void *place)
{
	void *symbol = dlsym(library, name);

	/* A function's address in an object's pointer, as dlsym has it. */
	memcpy(place, &symbol, sizeof(symbol));
	return symbol != NULL;
}

static int fill(void *library, struct client_verbs *v, struct extra *x)
{
	const struct {
		const char *name;
		void *place;
	} calls[] = {
		{"ibv_get_device_list", &v->get_device_list},
		{"ibv_free_device_list", &v->free_device_list},
		{"ibv_open_device", &v->open_device},
		{"ibv_close_device", &v->close_device},
		{"ibv_query_device", &v->query_device},
		{"ibv_query_gid", &v->query_gid},
		{"ibv_alloc_pd", &v->alloc_pd},
		{"ibv_dealloc_pd", &v->dealloc_pd},
		{"ibv_reg_mr", &v->reg_mr},
		{"ibv_dereg_mr", &v->dereg_mr},
		{"ibv_create_comp_channel", &v->create_comp_channel},
		{"ibv_destroy_comp_channel", &v->destroy_comp_channel},
		{"ibv_get_cq_event", &v->get_cq_event},
		{"ibv_ack_cq_events", &v->ack_cq_events},
		{"ibv_create_cq", &v->create_cq},
		{"ibv_destroy_cq", &v->destroy_cq},
		{"ibv_create_qp", &v->create_qp},
		{"ibv_modify_qp", &v->modify_qp},
		{"ibv_destroy_qp", &v->destroy_qp},
		{"ibv_get_device_name", &x->get_device_name},
		{"_ibv_query_gid_ex", &x->query_gid_ex},
	};

	for (unsigned i = 0; i < ARRAY_LEN(calls); i++)
		if (!find(library, calls[i].name, calls[i].place))
			return error_set(-ENODEV,
					 LIBRARY " is too old: it has no %s",
					 calls[i].name);
	v->name = "system's";
	v->query_port = system_query_port;
	return 0;
}

/* ---- which device, which address ---------------------------------------- */

/* The one of that name; without a name the first one. */
static struct ibv_device *choose(const struct extra *x,
				 struct ibv_device **list, const char *name)
{
	char known[NAMES_MAX] = "";
	size_t used = 0;

	for (unsigned i = 0; list[i]; i++) {
		const char *word = x->get_device_name(list[i]);

		if (!name[0] || strcmp(word, name) == 0)
			return list[i];
		if (used < sizeof(known))
			used += (size_t)snprintf(known + used,
						 sizeof(known) - used, "%s%s",
						 used ? ", " : "", word);
	}
	if (used == 0)
		(void)error_set(-ENODEV,
				"this machine has no RDMA device; 'aquifer "
				"doctor' says more, and nic.mode = soft needs "
				"none");
	else
		(void)error_set(-ENODEV,
				"there is no RDMA device %.60s (nic.device), "
				"but %.100s",
				name, known);
	return NULL;
}

/* nic.address as a GID; false for a name that is no IPv4 address. */
static bool parse_address(const char *address, union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	gid->raw[10] = gid->raw[11] = 0xff;
	return inet_pton(AF_INET, address, gid->raw + 12) == 1;
}

/* The entry of that address; else the first of RoCEv2 over IPv4, else the
 * first of RoCEv2. */
static int choose_gid(const struct extra *x, struct ibv_context *context,
		      const char *address)
{
	static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};
	union ibv_gid wanted;
	bool wants = parse_address(address, &wanted);
	int best = -1, best_rank = 0;

	for (uint32_t i = 0; i < GID_MAX; i++) {
		struct ibv_gid_entry e;
		int rank;

		if (x->query_gid_ex(context, PORT, i, &e, 0, sizeof(e)) ||
		    e.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		rank = 1 + (memcmp(e.gid.raw, v4, sizeof(v4)) == 0);
		if (wants && memcmp(&e.gid, &wanted, sizeof(wanted)) == 0)
			rank = 3;
		if (rank > best_rank) {
			best_rank = rank;
			best = (int)i;
		}
	}
	return best;
}

static int open_one(struct client_verbs *v, const struct extra *x,
		    const char *device, struct ibv_context **out)
{
	struct ibv_device **list = v->get_device_list(NULL);
	struct ibv_device *one;
	int err = 0;

	if (!list)
		return error_set(-ENODEV,
				 "the list of RDMA devices cannot be "
				 "read: %s",
				 strerror(errno));
	one = choose(x, list, device);
	*out = one ? v->open_device(one) : NULL;
	if (!one)
		err = -ENODEV;
	else if (!*out)
		err = error_set(-ENODEV,
				"the RDMA device %s cannot be opened: "
				"%s",
				x->get_device_name(one), strerror(errno));
	else
		log_info("client", "RDMA device %s of the system's " LIBRARY,
			 x->get_device_name(one));
	v->free_device_list(list);
	return err;
}

int client_verbs_system(const char *device, const char *address,
			struct client_verbs *v, struct ibv_context **context)
{
	/* Never closed: a provider may have threads of its own. */
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	struct ibv_port_attr port;
	struct extra x;
	int err;

	if (!library)
		return error_set(-ENODEV,
				 "nic.mode = hw needs rdma-core: %.150s",
				 dlerror());
	err = fill(library, v, &x);
	if (!err)
		err = open_one(v, &x, device, context);
	if (err)
		return err;
	v->gid_index = choose_gid(&x, *context, address);
	if (v->query_port(*context, PORT, &port))
		err = error_set(-ENODEV, "the RDMA device has no port 1");
	else if (v->gid_index < 0)
		err = error_set(-ENODEV, "the RDMA device has no address of "
					 "RoCEv2; is its interface up?");
	if (err) {
		(void)v->close_device(*context);
		return err;
	}
	return 0;
}
