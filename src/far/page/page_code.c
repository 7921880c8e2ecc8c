/* SPDX-License-Identifier: Apache-2.0 */
/* Shards of pages: Reed-Solomon by isa-l. One data shard means copies, which
 * nobody has to compute; they never get here. */
#include <isa-l/erasure_code.h>
#include <string.h>

#include "page_priv.h"

void page_code_init(struct page_code *c, uint32_t data, uint32_t parity,
		    uint32_t shard_bytes)
{
	*c = (struct page_code){
		.data = data, .parity = parity, .shard_bytes = shard_bytes};
	gf_gen_cauchy1_matrix(c->matrix, (int)(data + parity), (int)data);
	if (parity)
		ec_init_tables((int)data, (int)parity,
			       &c->matrix[(size_t)data * data], c->tables);
}

void page_code_encode(const struct page_code *c,
		      uint8_t *shard[PAGE_SHARDS_MAX])
{
	if (c->parity)
		ec_encode_data((int)c->shard_bytes, (int)c->data,
			       (int)c->parity, (uint8_t *)c->tables, shard,
			       &shard[c->data]);
}

void page_code_decode(const struct page_code *c, unsigned have, unsigned want,
		      uint8_t *shard[PAGE_SHARDS_MAX])
{
	uint8_t rows[PAGE_SHARDS_MAX * PAGE_SHARDS_MAX];
	uint8_t inverse[PAGE_SHARDS_MAX * PAGE_SHARDS_MAX];
	uint8_t product[PAGE_SHARDS_MAX * PAGE_SHARDS_MAX] = {0};
	uint8_t tables[32 * PAGE_SHARDS_MAX * PAGE_SHARDS_MAX];
	uint8_t *from[PAGE_SHARDS_MAX], *to[PAGE_SHARDS_MAX];
	uint32_t i, j, k, n = 0, m = 0, d = c->data;
	int err;

	for (i = 0; i < d + c->parity && n < d; i++) {
		if (!(have & 1u << i))
			continue;
		memcpy(&rows[n * d], &c->matrix[i * d], d);
		from[n++] = shard[i];
	}
	ASSERT(n == d);
	err = gf_invert_matrix(rows, inverse, (int)d);
	ASSERT(err == 0); /* every square part of a Cauchy matrix has one */
	for (i = 0; i < d + c->parity; i++) {
		if (!(want & 1u << i))
			continue;
		for (j = 0; j < d; j++)
			for (k = 0; k < d; k++)
				product[m * d + j] ^=
					gf_mul(c->matrix[i * d + k],
					       inverse[k * d + j]);
		to[m++] = shard[i];
	}
	ec_init_tables((int)d, (int)m, product, tables);
	ec_encode_data((int)c->shard_bytes, (int)d, (int)m, tables, from, to);
}
