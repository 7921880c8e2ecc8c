/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of the cost model's tables. */
#ifndef AQ_SIM_MODEL_LIMITS_H
#define AQ_SIM_MODEL_LIMITS_H

enum model_limits {
	MODEL_QPS_MAX = 16384, /* queue pairs whose order is remembered */
	MODEL_QP_PROBES = 64,
	MODEL_CACHE_MAX = 16384,
	MODEL_CACHE_WAYS = 8,
	MODEL_BUSY_BINS = 1024,
	MODEL_BUSY_BIN_SHIFT = 17, /* 131 ns */
	MODEL_BUCKETS_MAX = 4096,
	MODEL_LINES = 4096,
};

#endif
