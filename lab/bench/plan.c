/* SPDX-License-Identifier: Apache-2.0 */
/* The table of subjects and ratios. */
#include "plan.h"

#include "peers.h"

static const uint32_t block_64 = 64;
static const uint32_t block_4k = 4096;

static const struct ours_param lat64 = {.block = 64, .depth = 1, .qp_count = 1};
static const struct ours_param rate64 = {
	.block = 64, .depth = 64, .qp_count = 1};
static const struct ours_param rate4k = {
	.block = 4096, .depth = 32, .qp_count = 1};
static const struct ours_param direct64 = {
	.block = 64, .depth = 1, .qp_count = 1, .direct = true};
static const struct ours_param qp1000 = {
	.block = 64, .depth = 64, .qp_count = 1000};
static const struct ours_param caller = {
	.block = 64, .depth = 1, .qp_count = 1, .caller_time = true};
static const struct ours_param caller_direct = {.block = 64,
						.depth = 1,
						.qp_count = 1,
						.direct = true,
						.caller_time = true};

static const struct subject_desc ours_lat64 = {
	.name = "shm_read64_lat",
	.what = "READ 64 B, one outstanding, shm cable",
	.ops = &ours_ops,
	.param = &lat64};
static const struct subject_desc ours_rate64 = {
	.name = "shm_read64_rate",
	.what = "READ 64 B, 64 outstanding, shm cable",
	.ops = &ours_ops,
	.param = &rate64};
static const struct subject_desc ours_rate4k = {
	.name = "shm_read4k_rate",
	.what = "READ 4 KiB, 32 outstanding, shm cable",
	.ops = &ours_ops,
	.param = &rate4k};
static const struct subject_desc ours_direct64 = {
	.name = "direct_read64_lat",
	.what = "READ 64 B, one outstanding, direct",
	.ops = &ours_ops,
	.param = &direct64};
static const struct subject_desc ours_qp1 = {
	.name = "qp1_read64_rate",
	.what = "READ 64 B, 64 outstanding on 1 queue pair",
	.ops = &ours_ops,
	.param = &rate64};
static const struct subject_desc ours_qp1000 = {
	.name = "qp1000_read64_rate",
	.what = "READ 64 B, 64 outstanding over 1,000 queue pairs",
	.ops = &ours_ops,
	.param = &qp1000};
static const struct subject_desc ours_caller = {
	.name = "caller_shm",
	.what = "caller's time, shm cable",
	.ops = &ours_ops,
	.param = &caller};
static const struct subject_desc ours_caller_direct = {
	.name = "caller_direct",
	.what = "caller's time, direct",
	.ops = &ours_ops,
	.param = &caller_direct};

static const struct subject_desc udp_lat64 = {
	.name = "udp_read64_lat",
	.what = "READ 64 B, one outstanding, UDP on loopback",
	.ops = &ours_ops,
	.param = &lat64,
	.udp = true};
static const struct subject_desc udp_rate64 = {
	.name = "udp_read64_rate",
	.what = "READ 64 B, 64 outstanding, UDP on loopback",
	.ops = &ours_ops,
	.param = &rate64,
	.udp = true};
static const struct subject_desc udp_rate4k = {
	.name = "udp_read4k_rate",
	.what = "READ 4 KiB, 32 outstanding, UDP on loopback",
	.ops = &ours_ops,
	.param = &rate4k,
	.udp = true};
static const struct subject_desc udp_loss0 = {
	.name = "udp_loss0_rate",
	.what = "READ 64 B, 64 outstanding, UDP on loopback",
	.ops = &ours_ops,
	.param = &rate64,
	.udp = true};
static const struct subject_desc udp_loss1 = {
	.name = "udp_loss1_rate",
	.what = "READ 64 B, 64 outstanding, UDP, 1 % of packets lost",
	.ops = &ours_ops,
	.param = &rate64,
	.udp = true,
	.loss_ppm = 10000};

static const struct ours_param mac_lat64 = {
	.block = 64, .depth = 1, .qp_count = 1, .auth = true};
static const struct ours_param mac_rate64 = {
	.block = 64, .depth = 64, .qp_count = 1, .auth = true};
static const struct ours_param mac_rate4k = {
	.block = 4096, .depth = 32, .qp_count = 1, .auth = true};

static const struct subject_desc auth_lat64 = {
	.name = "auth_read64_lat",
	.what = "READ 64 B, one outstanding, UDP, packets with a MAC",
	.ops = &ours_ops,
	.param = &mac_lat64,
	.udp = true};
static const struct subject_desc auth_rate64 = {
	.name = "auth_read64_rate",
	.what = "READ 64 B, 64 outstanding, UDP, packets with a MAC",
	.ops = &ours_ops,
	.param = &mac_rate64,
	.udp = true};
static const struct subject_desc auth_rate4k = {
	.name = "auth_read4k_rate",
	.what = "READ 4 KiB, 32 outstanding, UDP, packets with a MAC",
	.ops = &ours_ops,
	.param = &mac_rate4k,
	.udp = true};
static const struct subject_desc plain_lat64 = {
	.name = "plain_read64_lat",
	.what = "READ 64 B, one outstanding, UDP, packets without",
	.ops = &ours_ops,
	.param = &lat64,
	.udp = true};
static const struct subject_desc plain_rate64 = {
	.name = "plain_read64_rate",
	.what = "READ 64 B, 64 outstanding, UDP, packets without",
	.ops = &ours_ops,
	.param = &rate64,
	.udp = true};
static const struct subject_desc plain_rate4k = {
	.name = "plain_read4k_rate",
	.what = "READ 4 KiB, 32 outstanding, UDP, packets without",
	.ops = &ours_ops,
	.param = &rate4k,
	.udp = true};

static const struct subject_desc peer_tcp_lat64 = {
	.name = "ucx_tcp_get64_lat",
	.what = "UCX get 64 B, one outstanding, tcp on loopback",
	.ucx_mode = "lat64",
	.ucx_tls = "tcp"};
static const struct subject_desc peer_tcp_get64 = {
	.name = "ucx_tcp_get64_rate",
	.what = "UCX get 64 B, 64 outstanding, tcp on loopback",
	.ucx_mode = "get64",
	.ucx_tls = "tcp"};
static const struct subject_desc peer_tcp_get4k = {
	.name = "ucx_tcp_get4k_rate",
	.what = "UCX get 4 KiB, 32 outstanding, tcp on loopback",
	.ucx_mode = "get4k",
	.ucx_tls = "tcp"};
static const struct subject_desc peer_ring = {
	.name = "ring_rtt64",
	.what = "raw ring, 64 B slots, round trip",
	.ops = &ring_peer_ops};
static const struct subject_desc peer_get64 = {
	.name = "ucx_shm_get64_rate",
	.what = "UCX get 64 B, 64 outstanding, ordinary memory",
	.ucx_mode = "get64",
	.ucx_tls = "posix,cma"};
static const struct subject_desc peer_get4k = {
	.name = "ucx_shm_get4k_rate",
	.what = "UCX get 4 KiB, 32 outstanding, ordinary memory",
	.ucx_mode = "get4k",
	.ucx_tls = "posix,cma"};
static const struct subject_desc peer_mapped64 = {
	.name = "ucx_mapped_get64_lat",
	.what = "UCX get 64 B, one outstanding, memory allocated by UCX",
	.ucx_mode = "mapped64",
	.ucx_tls = "posix"};
static const struct subject_desc peer_copy64 = {
	.name = "memcpy64",
	.what = "memcpy of 64 B, near memory",
	.ops = &copy_peer_ops,
	.param = &block_64};
static const struct subject_desc peer_copy4k = {
	.name = "memcpy4k",
	.what = "memcpy of 4 KiB, near memory",
	.ops = &copy_peer_ops,
	.param = &block_4k};

const struct plan_group plan_groups[] = {
	{.name = "shm_read64_lat_vs_ring",
	 .meaning = "64 B READ latency over a shm cable / round trip of a raw "
		    "ring",
	 .unit = PLAN_NS,
	 .subject = {&ours_lat64, &peer_ring},
	 .subject_count = 2,
	 .is_ratio = true,
	 .at_most = true,
	 .bound = 4,
	 .figure = &floor_ring_rtt},
	{.name = "shm_read64_rate_vs_ucx_shm",
	 .meaning = "64 B READs per second over a shm cable / UCX shm get",
	 .unit = PLAN_RATE,
	 .subject = {&ours_rate64, &peer_get64},
	 .subject_count = 2,
	 .is_ratio = true,
	 .bound = 0.7,
	 .figure = &floor_ucx_get64},
	{.name = "shm_read4k_rate_vs_ucx_shm",
	 .meaning = "4 KiB READs per second over a shm cable / UCX shm get",
	 .unit = PLAN_RATE,
	 .subject = {&ours_rate4k, &peer_get4k},
	 .subject_count = 2,
	 .is_ratio = true,
	 .bound = 0.6,
	 .figure = &floor_ucx_get4k},
	{.name = "direct_read64_lat_vs_ucx_mapped",
	 .meaning = "64 B READ latency, direct / UCX get on memory it mapped",
	 .unit = PLAN_NS,
	 .subject = {&ours_direct64, &peer_mapped64},
	 .subject_count = 2,
	 .is_ratio = true,
	 .at_most = true,
	 .bound = 5,
	 .figure = &floor_ucx_mapped64},
	{.name = "qp1000_rate_vs_qp1",
	 .meaning = "READ rate over 1,000 queue pairs / over one",
	 .unit = PLAN_RATE,
	 .subject = {&ours_qp1000, &ours_qp1},
	 .subject_count = 2,
	 .is_ratio = true,
	 .bound = 0.8},
	{.name = "udp_read64_lat_vs_ucx_tcp",
	 .meaning =
		 "64 B READ latency over UDP / UCX tcp get, both on loopback",
	 .unit = PLAN_NS,
	 .subject = {&udp_lat64, &peer_tcp_lat64},
	 .subject_count = 2,
	 .is_ratio = true,
	 .at_most = true,
	 .bound = 0.75,
	 .figure = &floor_ucx_tcp_lat64},
	{.name = "udp_read64_rate_vs_ucx_tcp",
	 .meaning = "64 B READs per second over UDP / UCX tcp get",
	 .unit = PLAN_RATE,
	 .subject = {&udp_rate64, &peer_tcp_get64},
	 .subject_count = 2,
	 .is_ratio = true,
	 .bound = 2.5,
	 .figure = &floor_ucx_tcp_get64},
	{.name = "udp_read4k_rate_vs_ucx_tcp",
	 .meaning = "4 KiB READs per second over UDP / UCX tcp get",
	 .unit = PLAN_RATE,
	 .subject = {&udp_rate4k, &peer_tcp_get4k},
	 .subject_count = 2,
	 .is_ratio = true,
	 .bound = 1.5,
	 .figure = &floor_ucx_tcp_get4k},
	{.name = "udp_loss1_rate_vs_loss0",
	 .meaning = "READ rate over UDP at 1 % loss / without loss",
	 .unit = PLAN_RATE,
	 .subject = {&udp_loss1, &udp_loss0},
	 .subject_count = 2,
	 .is_ratio = true,
	 .bound = 0.5},
	{.name = "auth_lat",
	 .meaning = "what nic.auth = psk costs: latency over UDP with and "
		    "without",
	 .unit = PLAN_NS,
	 .subject = {&auth_lat64, &plain_lat64},
	 .subject_count = 2},
	{.name = "auth_rate",
	 .meaning = "what nic.auth = psk costs: READs per second over UDP with "
		    "and without",
	 .unit = PLAN_RATE,
	 .subject = {&auth_rate64, &plain_rate64, &auth_rate4k, &plain_rate4k},
	 .subject_count = 4},
	{.name = "caller_time",
	 .meaning =
		 "the caller's time for one post and one poll, beside memcpy",
	 .unit = PLAN_NS,
	 .subject = {&ours_caller, &ours_caller_direct, &peer_copy64,
		     &peer_copy4k},
	 .subject_count = 4},
};

const unsigned plan_group_count = sizeof(plan_groups) / sizeof(plan_groups[0]);
