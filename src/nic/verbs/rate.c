/* SPDX-License-Identifier: Apache-2.0 */
/* Link rates: the API's numbers, multiples of 2.5 Gb/s, and Mb/s. */
#include "verbs_priv.h"

static const struct rate {
	enum ibv_rate rate;
	int mult; /* 0: no whole multiple of 2.5 Gb/s */
	int mbps;
} rates[] = {
	{IBV_RATE_2_5_GBPS, 1, 2500},	    {IBV_RATE_5_GBPS, 2, 5000},
	{IBV_RATE_10_GBPS, 4, 10000},	    {IBV_RATE_20_GBPS, 8, 20000},
	{IBV_RATE_30_GBPS, 12, 30000},	    {IBV_RATE_40_GBPS, 16, 40000},
	{IBV_RATE_60_GBPS, 24, 60000},	    {IBV_RATE_80_GBPS, 32, 80000},
	{IBV_RATE_120_GBPS, 48, 120000},    {IBV_RATE_14_GBPS, 0, 14062},
	{IBV_RATE_56_GBPS, 0, 56250},	    {IBV_RATE_112_GBPS, 0, 112500},
	{IBV_RATE_168_GBPS, 0, 168750},	    {IBV_RATE_25_GBPS, 0, 25781},
	{IBV_RATE_100_GBPS, 0, 103125},	    {IBV_RATE_200_GBPS, 0, 206250},
	{IBV_RATE_300_GBPS, 0, 309375},	    {IBV_RATE_28_GBPS, 11, 28125},
	{IBV_RATE_50_GBPS, 20, 53125},	    {IBV_RATE_400_GBPS, 160, 425000},
	{IBV_RATE_600_GBPS, 240, 637500},   {IBV_RATE_800_GBPS, 320, 850000},
	{IBV_RATE_1200_GBPS, 480, 1275000},
};

static const struct rate *rate_find(enum ibv_rate rate)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(rates); i++)
		if (rates[i].rate == rate)
			return &rates[i];
	return NULL;
}

VERBS_EXPORT int ibv_rate_to_mult(enum ibv_rate rate)
{
	const struct rate *r = rate_find(rate);

	return r && r->mult ? r->mult : -1;
}

VERBS_EXPORT enum ibv_rate mult_to_ibv_rate(int mult)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(rates); i++)
		if (mult > 0 && rates[i].mult == mult)
			return rates[i].rate;
	return IBV_RATE_MAX;
}

VERBS_EXPORT int ibv_rate_to_mbps(enum ibv_rate rate)
{
	const struct rate *r = rate_find(rate);

	return r ? r->mbps : -1;
}

VERBS_EXPORT enum ibv_rate mbps_to_ibv_rate(int mbps)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(rates); i++)
		if (rates[i].mbps == mbps)
			return rates[i].rate;
	return IBV_RATE_MAX;
}
