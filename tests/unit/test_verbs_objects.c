/* SPDX-License-Identifier: Apache-2.0 */
/* Devices, contexts and objects: what they say, and every refusal. */
#include "verbs_pair.h"

#include <aquifer/aqdv.h>
#include <endian.h>
#include <sys/mman.h>

static void test_no_provider_means_no_devices(void **state)
{
	int n = -1;
	struct ibv_device **list;

	verbs_set_provider(NULL);
	list = ibv_get_device_list(&n);
	assert_non_null(list);
	assert_int_equal(n, 0);
	assert_null(list[0]);
	ibv_free_device_list(list);
}

static void test_list_and_identity(void **state)
{
	struct ibv_device **one, **two;
	struct ibv_device foreign = {0};
	struct pair p = {0};
	unsigned i;

	pair_open(&p);
	one = ibv_get_device_list(NULL);
	two = ibv_get_device_list(NULL);
	assert_ptr_equal(one[0], two[0]);
	assert_ptr_equal(one[0], p.ctx->device);
	assert_string_equal(ibv_get_device_name(one[0]), "loop0");
	assert_true(be64toh(ibv_get_device_guid(one[0])) ==
		    0x0200000000000001u);
	assert_int_equal(ibv_get_device_index(one[0]), 0);
	assert_true(aqdv_is_supported(one[0]));
	assert_false(aqdv_is_supported(&foreign));
	assert_false(aqdv_is_supported(NULL));
	/* Foreign libraries read behind the public structure. */
	for (i = 0; i < 256; i++)
		assert_int_equal(((uint8_t *)(one[0] + 1))[i], 0);
	ibv_free_device_list(one);
	ibv_free_device_list(two);
	assert_null(ibv_open_device(&foreign));
	assert_int_equal(errno, ENODEV);
	assert_null(ibv_open_device(NULL));
	pair_close(&p);
}

static void test_attributes(void **state)
{
	struct ibv_device_attr_ex ex = {0};
	struct ibv_port_attr port;
	struct ibv_values_ex now = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	struct ibv_device_attr attr;
	struct pair p = {0};
	__be16 pkey;

	pair_open(&p);
	assert_int_equal(ibv_query_device(p.ctx, &attr), 0);
	assert_int_equal(attr.atomic_cap, IBV_ATOMIC_HCA);
	assert_int_equal(attr.vendor_part_id, 4119);
	setenv("AQUIFER_VENDOR_PART_ID", "0x77", 1);
	assert_int_equal(ibv_query_device(p.ctx, &attr), 0);
	assert_int_equal(attr.vendor_part_id, 0x77);
	setenv("AQUIFER_VENDOR_PART_ID", "junk", 1);
	assert_int_equal(ibv_query_device(p.ctx, &attr), 0);
	assert_int_equal(attr.vendor_part_id, 4119);
	unsetenv("AQUIFER_VENDOR_PART_ID");

	assert_int_equal(ibv_query_device_ex(p.ctx, NULL, &ex), 0);
	assert_true(ex.max_dm_size >= 256 * 1024);
	assert_int_equal(ex.hca_core_clock, 1000000);
	assert_int_equal(ibv_query_port(p.ctx, 1, &port), 0);
	assert_int_equal(port.state, IBV_PORT_ACTIVE);
	assert_int_equal(port.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(port.gid_tbl_len, 2);
	assert_int_equal(ibv_query_port(p.ctx, 2, &port), EINVAL);
	assert_int_equal(ibv_query_rt_values_ex(p.ctx, &now), 0);
	assert_true(now.raw_clock.tv_nsec > 0);
	assert_int_equal(ibv_query_pkey(p.ctx, 1, 0, &pkey), 0);
	assert_int_equal(pkey, 0xffff);
	assert_int_equal(ibv_query_pkey(p.ctx, 1, 1, &pkey), -1);
	assert_int_equal(ibv_get_pkey_index(p.ctx, 1, pkey), 0);
	assert_int_equal(ibv_get_pkey_index(p.ctx, 1, 1), -1);
	pair_close(&p);
}

/* A structure shorter or longer than ours must be filled to its own length. */
static void test_lengths_of_callers(void **state)
{
	struct ibv_port_attr port;
	struct {
		struct ibv_gid_entry entry;
		uint64_t newer;
	} wide[2];
	struct ibv_gid_entry entries[2];
	struct pair p = {0};
	uint8_t narrow[20];

	pair_open(&p);
	memset(&port, 0xee, sizeof(port));
	assert_int_equal(verbs_get_ctx(p.ctx)->query_port(p.ctx, 1, &port, 8),
			 0);
	assert_int_equal(((uint8_t *)&port)[8], 0xee);

	memset(narrow, 0xee, sizeof(narrow));
	assert_int_equal(_ibv_query_gid_ex(p.ctx, 1, 1,
					   (struct ibv_gid_entry *)narrow, 0,
					   16),
			 0);
	assert_int_equal(narrow[15], 1);
	assert_int_equal(narrow[16], 0xee);
	memset(wide, 0xee, sizeof(wide));
	assert_int_equal(_ibv_query_gid_table(p.ctx, &wide[0].entry, 2, 0,
					      sizeof(wide[0])),
			 2);
	assert_int_equal(wide[1].entry.gid_index, 1);
	assert_int_equal(wide[1].entry.gid_type, IBV_GID_TYPE_ROCE_V2);
	assert_true(wide[0].newer == 0);
	assert_int_equal(ibv_query_gid_table(p.ctx, entries, 1, 0), -EINVAL);
	assert_int_equal(ibv_query_gid_table(p.ctx, entries, 2, 0), 2);
	assert_int_equal(ibv_query_gid_ex(p.ctx, 1, 9, entries, 0), ENODATA);
	assert_int_equal(ibv_query_gid_ex(p.ctx, 9, 0, entries, 0), EINVAL);
	assert_int_equal(ibv_query_gid(p.ctx, 1, -1, &entries[0].gid), -1);
	pair_close(&p);
}

static void test_users_keep_objects_alive(void **state)
{
	struct pair p = {0};

	pair_open(&p);
	p.channel = ibv_create_comp_channel(p.ctx);
	pair_make(&p, IBV_QPT_RC, 0);
	assert_int_equal(ibv_dealloc_pd(p.pd), EBUSY);
	assert_int_equal(ibv_destroy_cq(p.a.cq), EBUSY);
	assert_int_equal(ibv_destroy_comp_channel(p.channel), EBUSY);
	pair_break(&p);
	assert_int_equal(ibv_destroy_comp_channel(p.channel), 0);
	pair_close(&p);
}

/* What a program leaves behind goes with its context. */
static void test_close_takes_everything(void **state)
{
	struct ibv_alloc_dm_attr dm = {.length = 64};
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct pair p = {0};

	pair_open(&p);
	p.channel = ibv_create_comp_channel(p.ctx);
	pair_make(&p, IBV_QPT_RC, 0);
	assert_non_null(ibv_alloc_mw(p.pd, IBV_MW_TYPE_2));
	assert_non_null(ibv_create_srq(p.pd, &srq));
	assert_non_null(ibv_reg_dm_mr(p.pd, ibv_alloc_dm(p.ctx, &dm), 0, 64,
				      IBV_ACCESS_ZERO_BASED));
	free(p.a.buf);
	free(p.b.buf);
	pair_close(&p);
}

static void check_mr(struct ibv_pd *pd, void *addr, size_t length, int access,
		     int err)
{
	errno = 0;
	assert_null(ibv_reg_mr(pd, addr, length, access));
	assert_int_equal(errno, err);
}

/* As pinning would have it, without touching a page. */
static void test_rights_of_pages(void **state)
{
	struct pair p = {0};
	struct ibv_mr *mr;
	char *pages;

	pair_open(&p);
	p.pd = ibv_alloc_pd(p.ctx);
	pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(pages + 4096, 4096, PROT_READ);
	check_mr(p.pd, pages, 3 * 4096, IBV_ACCESS_LOCAL_WRITE, EFAULT);
	check_mr(p.pd, pages + 4096, 64, IBV_ACCESS_LOCAL_WRITE, EFAULT);
	check_mr(p.pd, pages + 8000, 4096, IBV_ACCESS_LOCAL_WRITE, EFAULT);
	check_mr(p.pd, pages + 4096, 64, IBV_ACCESS_MW_BIND, EFAULT);
	mr = ibv_reg_mr(p.pd, pages, 3 * 4096, IBV_ACCESS_REMOTE_READ);
	assert_non_null(mr);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL,
				      NULL, 0, IBV_ACCESS_LOCAL_WRITE),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EFAULT);
	mprotect(pages + 4096, 4096, PROT_READ | PROT_WRITE);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL,
				      NULL, 0, IBV_ACCESS_LOCAL_WRITE),
			 0);
	/* The rights that it has now are those of other memory, too. */
	mprotect(pages, 4096, PROT_READ);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				      pages, 64, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	mprotect(pages, 4096, PROT_NONE);
	check_mr(p.pd, pages, 64, 0, EFAULT);
	munmap(pages, 3 * 4096);
	assert_int_equal(ibv_dealloc_pd(p.pd), 0);
	pair_close(&p);
}

static void test_bad_regions(void **state)
{
	struct pair p = {0};
	char *pages, buf[64];
	struct ibv_mr *mr;

	pair_open(&p);
	p.pd = ibv_alloc_pd(p.ctx);
	pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(pages + 4096, 4096);
	check_mr(p.pd, NULL, 64, IBV_ACCESS_LOCAL_WRITE, EINVAL);
	check_mr(p.pd, buf, 0, IBV_ACCESS_LOCAL_WRITE, EINVAL);
	check_mr(p.pd, buf, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE, EINVAL);
	check_mr(p.pd, pages, 3 * 4096, IBV_ACCESS_LOCAL_WRITE, EFAULT);
	check_mr(p.pd, (void *)16, 64, IBV_ACCESS_LOCAL_WRITE, EFAULT);
	check_mr(p.pd, buf, 64, IBV_ACCESS_REMOTE_WRITE, EINVAL);
	check_mr(p.pd, buf, 64, IBV_ACCESS_REMOTE_ATOMIC, EINVAL);
	check_mr(p.pd, buf, 64, IBV_ACCESS_ON_DEMAND, EOPNOTSUPP);
	check_mr(p.pd, buf, 64, 1 << 15, EINVAL);
	mr = ibv_reg_mr(p.pd, buf, 64,
			IBV_ACCESS_RELAXED_ORDERING | IBV_ACCESS_HUGETLB);
	assert_non_null(mr);
	assert_int_equal(ibv_rereg_mr(mr, 0, NULL, NULL, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				      pages, 3 * 4096, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				      pages, 4096, 0),
			 0);
	assert_ptr_equal(mr->addr, pages);
	assert_int_equal(mr->length, 4096);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(pages, 4096);
	munmap(pages + 2 * 4096, 4096);
	assert_int_equal(ibv_dealloc_pd(p.pd), 0);
	pair_close(&p);
}

static void test_bad_queues(void **state)
{
	struct ibv_qp_init_attr good, init = {.qp_type = IBV_QPT_RC};
	struct ibv_qp_init_attr_ex ex = {0};
	struct ibv_srq_init_attr srq = {0};
	struct pair p = {0};
	struct ibv_cq *cq;

	pair_open(&p);
	p.pd = ibv_alloc_pd(p.ctx);
	assert_null(ibv_create_cq(p.ctx, 0, NULL, NULL, 0));
	assert_null(ibv_create_cq(p.ctx, -1, NULL, NULL, 0));
	assert_null(ibv_create_cq(p.ctx, INT32_MAX, NULL, NULL, 0));
	assert_null(ibv_create_cq(p.ctx, 1, NULL, NULL, 1));
	assert_null(ibv_create_cq(p.ctx, 1, NULL, NULL, -1));
	assert_int_equal(errno, EINVAL);
	cq = ibv_create_cq(p.ctx, 10, NULL, NULL, 0);
	assert_true(cq->cqe >= 10);
	assert_int_equal(ibv_resize_cq(cq, 0), EINVAL);
	assert_int_equal(ibv_resize_cq(cq, 1000), 0);
	assert_true(cq->cqe >= 1000);

	init.send_cq = init.recv_cq = cq;
	good = init;
	init.qp_type = IBV_QPT_UC;
	assert_null(ibv_create_qp(p.pd, &init));
	assert_int_equal(errno, EOPNOTSUPP);
	init = good;
	init.recv_cq = NULL;
	assert_null(ibv_create_qp(p.pd, &init));
	assert_int_equal(errno, EINVAL);
	init = good;
	init.cap.max_send_wr = 1u << 30;
	assert_null(ibv_create_qp(p.pd, &init));
	init = good;
	init.cap.max_recv_sge = 1000;
	assert_null(ibv_create_qp(p.pd, &init));
	init = good;
	init.cap.max_inline_data = 1u << 20;
	assert_null(ibv_create_qp(p.pd, &init));
	assert_int_equal(errno, EINVAL);

	memcpy(&ex, &good, sizeof(good));
	ex.pd = p.pd;
	ex.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	ex.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE;
	assert_null(ibv_create_qp_ex(p.ctx, &ex));
	assert_int_equal(errno, EOPNOTSUPP);
	ex.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD;
	assert_null(ibv_create_qp_ex(p.ctx, &ex));
	assert_int_equal(errno, EOPNOTSUPP);

	assert_null(ibv_create_srq(p.pd, &srq));
	srq.attr.max_wr = 1u << 30;
	assert_null(ibv_create_srq(p.pd, &srq));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(p.pd), 0);
	pair_close(&p);
}

static void test_device_memory(void **state)
{
	struct ibv_alloc_dm_attr attr = {.length = 128};
	uint8_t in[128], out[128] = {0};
	struct pair p = {0};
	struct ibv_dm *dm;
	struct ibv_mr *mr;

	memset(in, 0x5a, sizeof(in));
	pair_open(&p);
	p.pd = ibv_alloc_pd(p.ctx);
	dm = ibv_alloc_dm(p.ctx, &attr);
	assert_non_null(dm);
	assert_int_equal(ibv_memcpy_to_dm(dm, 0, in, sizeof(in)), 0);
	assert_int_equal(ibv_memcpy_from_dm(out, dm, 0, sizeof(out)), 0);
	assert_memory_equal(in, out, sizeof(in));
	assert_int_equal(ibv_memcpy_to_dm(dm, 2, in, 4), EINVAL);
	assert_int_equal(ibv_memcpy_to_dm(dm, 0, in, 3), EINVAL);
	assert_int_equal(ibv_memcpy_to_dm(dm, 64, in, 128), EINVAL);
	assert_int_equal(ibv_memcpy_from_dm(out, dm, UINT64_MAX - 3, 8),
			 EINVAL);
	assert_null(ibv_reg_dm_mr(p.pd, dm, 0, 128, IBV_ACCESS_LOCAL_WRITE));
	mr = ibv_reg_dm_mr(p.pd, dm, 0, 128, IBV_ACCESS_ZERO_BASED);
	assert_non_null(mr);
	assert_int_equal(ibv_free_dm(dm), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
	attr.length = 0;
	assert_null(ibv_alloc_dm(p.ctx, &attr));
	attr.length = 1ull << 40;
	assert_null(ibv_alloc_dm(p.ctx, &attr));
	assert_int_equal(ibv_dealloc_pd(p.pd), 0);
	pair_close(&p);
}

/* A context that some other library made. */
static void test_direct_verbs_elsewhere(void **state)
{
	struct aqdv_device_attr attr = {0};
	struct verbs_context foreign = {.sz = sizeof(foreign)};
	struct ibv_qp qp = {.context = &foreign.context};
	struct aqdv_masked_wr wr = {0}, *bad = NULL;
	struct aqdv_read look = {0};
	struct pair p = {0};
	uint64_t value;
	void *addr;

	foreign.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	assert_int_equal(aqdv_query_device(&foreign.context, &attr),
			 -EOPNOTSUPP);
	assert_int_equal(aqdv_post_masked_cas(&qp, &wr, &bad), -EOPNOTSUPP);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(aqdv_read_now(&qp, &look, 1), -EOPNOTSUPP);
	assert_int_equal(aqdv_alloc(&foreign.context, 1, 0, &addr),
			 -EOPNOTSUPP);
	assert_int_equal(ibv_close_device(&foreign.context), EINVAL);
	assert_null(verbs_host(&foreign.context));
	assert_null(verbs_host(NULL));

	pair_open(&p);
	assert_int_equal(aqdv_query_device(p.ctx, &attr), 0);
	assert_int_equal(attr.caps, AQDV_CAP_MASKED_CAS | AQDV_CAP_MASKED_FAA |
					    AQDV_CAP_CHAINS | AQDV_CAP_AUTH |
					    AQDV_CAP_WALK);
	attr.comp_mask = 1;
	assert_int_equal(aqdv_query_device(p.ctx, &attr), -EINVAL);
	/* This host has no direct port. */
	assert_int_equal(aqdv_alloc(p.ctx, 4096, 0, &addr), -EOPNOTSUPP);
	assert_int_equal(aqdv_get_counter(p.ctx, "rx_frames", &value), 0);
	assert_int_equal(aqdv_get_counter(p.ctx, "nonsense", &value), -ENOENT);
	assert_string_equal(aqdv_counter_name(0), "rx_frames");
	assert_null(aqdv_counter_name(1000));
	pair_close(&p);
}

static void test_words_and_rates(void **state)
{
	assert_string_equal(ibv_wc_status_str(IBV_WC_SUCCESS), "success");
	assert_string_equal(ibv_wc_status_str(1000), "unknown");
	assert_string_equal(ibv_event_type_str(-1), "unknown");
	assert_string_equal(ibv_node_type_str(IBV_NODE_UNKNOWN), "unknown");
	assert_string_equal(ibv_port_state_str(IBV_PORT_ACTIVE), "active");
	assert_int_equal(ibv_rate_to_mult(IBV_RATE_5_GBPS), 2);
	assert_int_equal(ibv_rate_to_mult(IBV_RATE_MAX), -1);
	assert_int_equal(mult_to_ibv_rate(4), IBV_RATE_10_GBPS);
	assert_int_equal(mult_to_ibv_rate(0), IBV_RATE_MAX);
	assert_int_equal(ibv_rate_to_mbps(IBV_RATE_100_GBPS), 103125);
	assert_int_equal(mbps_to_ibv_rate(5000), IBV_RATE_5_GBPS);
	assert_int_equal(mbps_to_ibv_rate(1), IBV_RATE_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_provider_means_no_devices),
		cmocka_unit_test(test_list_and_identity),
		cmocka_unit_test(test_attributes),
		cmocka_unit_test(test_lengths_of_callers),
		cmocka_unit_test(test_users_keep_objects_alive),
		cmocka_unit_test(test_close_takes_everything),
		cmocka_unit_test(test_rights_of_pages),
		cmocka_unit_test(test_bad_regions),
		cmocka_unit_test(test_bad_queues),
		cmocka_unit_test(test_device_memory),
		cmocka_unit_test(test_direct_verbs_elsewhere),
		cmocka_unit_test(test_words_and_rates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
