/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the soft NIC. <infiniband/verbs.h> makes macros of some of the
 * names and versions of others, hence the small functions. */
#include <aquifer/aqdv.h>
#include <string.h>

#include "verbs_api.h"

static int soft_query_port(struct ibv_context *context, uint8_t port,
			   struct ibv_port_attr *attr)
{
	return ibv_query_port(context, port, attr);
}

static struct ibv_mr *soft_reg_mr(struct ibv_pd *pd, void *addr, size_t len,
				  int access)
{
	return ibv_reg_mr(pd, addr, len, access);
}

const struct client_verbs *client_verbs_choose(void)
{
	static const struct client_verbs soft = {
		.name = "soft",
		.get_device_list = ibv_get_device_list,
		.free_device_list = ibv_free_device_list,
		.open_device = ibv_open_device,
		.close_device = ibv_close_device,
		.query_device = ibv_query_device,
		.query_port = soft_query_port,
		.query_gid = ibv_query_gid,
		.alloc_pd = ibv_alloc_pd,
		.dealloc_pd = ibv_dealloc_pd,
		.reg_mr = soft_reg_mr,
		.dereg_mr = ibv_dereg_mr,
		.create_comp_channel = ibv_create_comp_channel,
		.destroy_comp_channel = ibv_destroy_comp_channel,
		.get_cq_event = ibv_get_cq_event,
		.ack_cq_events = ibv_ack_cq_events,
		.create_cq = ibv_create_cq,
		.destroy_cq = ibv_destroy_cq,
		.create_qp = ibv_create_qp,
		.modify_qp = ibv_modify_qp,
		.destroy_qp = ibv_destroy_qp,
		.open_in_rack = aqdv_open_device,
		.set_auth = aqdv_qp_set_auth,
		.gid_index = 1,
	};

	return &soft;
}
