/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memories of the chapter on CXL as they were measured: Intel's Memory
 * Latency Checker 3.10, 16 threads, 64 bytes, two DDR5-4800 channels of a
 * Sapphire Rapids (one domain of SNC-4) and one Astera Labs A1000 on 16 lanes
 * of PCIe 5. Idle latencies and peaks: Y. Tang's dissertation, 4.1.3, and the
 * paper that it revises (EuroSys 2024). Points of latency over load: read off
 * the raw logs that were published beside the paper, and so were the peaks of
 * more threads than that domain has, 64 on all domains of the socket
 * (log_m_c64_*) and 46 on two (cxl/log_d0_c46_*), none of which waits. Nothing
 * here was changed for a figure.
 */
#ifndef AQ_FIGURES_TFIG_CURVES_H
#define AQ_FIGURES_TFIG_CURVES_H

#include "tier/curve.h"

enum tfig_mix {
	TFIG_READ,  /* reads only */
	TFIG_2_1,   /* two reads for each write */
	TFIG_1_1,   /* no curve was published for it */
	TFIG_WRITE, /* non-temporal writes only */
	TFIG_MIXES,
};

enum tfig_memory {
	TFIG_DDR,
	TFIG_DDR_REMOTE, /* of the other socket */
	TFIG_CXL,
	TFIG_CXL_REMOTE,
	TFIG_MEMORIES,
};

struct tfig_published {
	const char *name;
	double idle_ns;
	double peak_gbs[TFIG_MIXES];
	/* What is left of it when so many threads want it; 0: not known. */
	double crowd_threads;
	double crowd_gbs[TFIG_MIXES];
	/* Without points: none were published. */
	struct tier_curve curve[TFIG_MIXES];
};

static const struct tfig_published tfig_published[TFIG_MEMORIES] = {
	[TFIG_DDR] = {"local",
		      97,
		      {67, 61, 60, 55},
		      64,
		      {67, 49.2, 42.7, 29},
		      {[TFIG_READ] = {{{2.3, 98},
				       {8.5, 101},
				       {15.8, 104},
				       {24.8, 107},
				       {34.8, 113},
				       {67.6, 200},
				       {68.1, 249}},
				      7},
		       [TFIG_2_1] = {{{1.9, 100},
				      {10.5, 103},
				      {19.1, 108},
				      {33.6, 126},
				      {45.5, 151},
				      {54.9, 192},
				      {61.2, 351},
				      {61.3, 472}},
				     8},
		       [TFIG_WRITE] = {{{0.8, 99},
					{5.4, 104},
					{9.5, 107},
					{20.1, 119},
					{37.7, 200},
					{53.4, 700}},
				       6}}},
	[TFIG_DDR_REMOTE] =
		{"remote", 131, {70, 43, 38, 34.5}, 0, {0}, {{{{0}}, 0}}},
	[TFIG_CXL] = {"CXL",
		      250,
		      {48, 54, 54, 47},
		      46,
		      {46.7, 50.8, 49.9, 46.9},
		      {[TFIG_READ] = {{{0.9, 250},
				       {5.2, 274},
				       {12.3, 288},
				       {23.4, 306},
				       {36.2, 342},
				       {45.0, 457},
				       {47.2, 508},
				       {48.0, 803}},
				      8},
		       [TFIG_2_1] = {{{2.1, 262},
				      {7.7, 287},
				      {15.1, 310},
				      {28.2, 342},
				      {36.0, 374},
				      {49.3, 526},
				      {52.0, 766},
				      {54.2, 772}},
				     8},
		       [TFIG_WRITE] = {{{0.4, 244},
					{4.5, 277},
					{7.3, 310},
					{13.2, 394},
					{30.1, 471},
					{47.0, 570}},
				       6}}},
	[TFIG_CXL_REMOTE] = {"remote CXL",
			     485,
			     {20.3, 20.7, 21.5, 27.7},
			     0,
			     {0},
			     {{{{0}}, 0}}},
};

#endif
