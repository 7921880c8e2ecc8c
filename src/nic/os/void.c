/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path to where nothing can be reached: frames are swallowed, as a network
 * does with frames to nobody, and the sender's retries run out.
 */
#include "os_priv.h"

static uint8_t *void_tx_begin(struct env_path *path, size_t max_bytes)
{
	return path->host->scratch;
}

static void void_tx_end(struct env_path *path, size_t len_bytes)
{
}

/* What is not answered must not be executed. */
static uint32_t void_from(struct env_path *path)
{
	return NIC_FROM_NOBODY;
}

const struct port_ops void_port = {
	.from = void_from,
	.tx_begin = void_tx_begin,
	.tx_end = void_tx_end,
};
