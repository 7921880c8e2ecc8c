/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames that a hostile process sends past its NIC. A process has its end of a
 * cable mapped and may write there what it wants; so it need not build each
 * frame, which costs it much less than the node pays. Here a frame of the NIC
 * is copied when it leaves, changed, and sent again and again.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/lock.h"
#include "fair.h"
#include "os/os.h"

enum {
	BURST = 32,
	RKEY_AT = WIRE_ETH_BYTES + WIRE_IP4_BYTES + WIRE_UDP_BYTES +
		  WIRE_BTH_BYTES + 8,
};

/* ---- the tap --------------------------------------------------------------
 */

static struct fair_nic *nic_of(struct env *env)
{
	return container_of(env->ops, struct fair_nic, tapped);
}

static uint8_t *tap_begin(struct env *env, struct env_path *path,
			  size_t max_bytes)
{
	struct fair_nic *nic = nic_of(env);

	nic->open_frame = nic->real->tx_begin(env, path, max_bytes);
	return nic->open_frame;
}

static uint8_t *tap_begin_exact(struct env *env, struct env_path *path,
				size_t len_bytes)
{
	struct fair_nic *nic = nic_of(env);

	nic->open_frame = nic->real->tx_begin_exact(env, path, len_bytes);
	return nic->open_frame;
}

static void tap_end(struct env *env, struct env_path *path, size_t len_bytes)
{
	struct fair_nic *nic = nic_of(env);

	if (nic->is_tapped && len_bytes) {
		memcpy(nic->frame, nic->open_frame, len_bytes);
		nic->frame_bytes = len_bytes;
		nic->path = path;
		nic->is_tapped = false;
	}
	nic->real->tx_end(env, path, len_bytes);
}

void fair_tap_want(struct fair_nic *nic)
{
	lock_take(&nic->host->lock);
	nic->is_tapped = true;
	lock_drop(&nic->host->lock);
}

/* ---- the device -----------------------------------------------------------
 */

static unsigned provider_count(void *ctx)
{
	return 1;
}

static void provider_describe(void *ctx, unsigned index, char name[64],
			      uint64_t *guid)
{
	snprintf(name, 64, "fair");
	*guid = (uintptr_t)ctx;
}

static int provider_open(void *ctx, unsigned index, const char *rack,
			 struct nic_host **out)
{
	struct fair_nic *nic = ctx;
	struct os_config cfg;
	int err;

	if (nic->host)
		return -EBUSY;
	os_config_init(&cfg);
	snprintf(cfg.rack, sizeof(cfg.rack), "local");
	err = os_host_open(&cfg, &nic->host);
	if (err)
		return err;
	lock_take(&nic->host->lock);
	nic->real = nic->host->env->ops;
	nic->tapped = *nic->real;
	nic->tapped.tx_begin = tap_begin;
	nic->tapped.tx_begin_exact = tap_begin_exact;
	nic->tapped.tx_end = tap_end;
	if (nic->is_hostile)
		nic->host->env->ops = &nic->tapped;
	lock_drop(&nic->host->lock);
	*out = nic->host;
	return 0;
}

void fair_tap_init(struct fair_nic *nic)
{
	nic->provider = (struct nic_provider){.ctx = nic,
					      .count = provider_count,
					      .describe = provider_describe,
					      .open = provider_open};
}

/* ---- the frame ------------------------------------------------------------
 */

void fair_frame_spoil(struct fair_nic *nic, enum fair_kind kind)
{
	size_t end = nic->frame_bytes - WIRE_ICRC_BYTES;
	uint32_t icrc;

	if (kind == FAIR_DAMAGED)
		nic->frame[end] ^= 1;
	if (kind != FAIR_BAD_KEY)
		return;
	nic->frame[RKEY_AT] ^= 0x55;
	icrc = wire_icrc(nic->frame + WIRE_ETH_BYTES, end - WIRE_ETH_BYTES);
	memcpy(nic->frame + end, &icrc, sizeof(icrc));
}

int fair_frame_send(struct fair_nic *nic)
{
	struct env *env = nic->host->env;
	int n;

	lock_take(&nic->host->lock);
	for (n = 0; n < BURST; n++) {
		uint8_t *out = nic->real->tx_begin_exact(env, nic->path,
							 nic->frame_bytes);

		if (!out)
			break;
		memcpy(out, nic->frame, nic->frame_bytes);
		nic->real->tx_end(env, nic->path, nic->frame_bytes);
	}
	lock_drop(&nic->host->lock);
	return n;
}
