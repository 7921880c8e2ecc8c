/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of coherent shared memory as records on the wire, and back. */
#include "record.h"

#include <errno.h>
#include <string.h>

#include "base/plant.h"

STATIC_ASSERT((int)COHERENCE_LANES == (int)COH_LANES_MAX, "lanes of an INVAL");

static void put_range(struct coherence_record *w, const struct coh_range *r)
{
	w->page = be64_put(r->page);
	w->count = be32_put(r->count);
}

static void put_inval(struct coherence_inval *w, const struct coh_inval *v)
{
	w->record.term = be32_put(v->term);
	w->record.seq = be32_put(v->seq);
	w->record.to = (uint8_t)v->to;
	w->record.target = be64_put(v->target);
	put_range(&w->record, &v->range);
	for (unsigned i = 0; i < COH_LANES_MAX; i++)
		w->granted[i] =
			be32_put(PLANTED(coh_no_serial) ? 0 : v->granted[i]);
}

uint32_t coh_record_build(const struct coh_record *r,
			  uint8_t out[COHERENCE_INVAL_BYTES])
{
	struct coherence_inval w = {
		.record = {.version = COHERENCE_VERSION, .kind = r->kind}};

	switch ((enum coherence_kind)r->kind) {
	case COHERENCE_INVAL:
		put_inval(&w, &r->inval);
		break;
	case COHERENCE_LOST:
		w.record.to = r->why;
		w.record.lane = r->lane;
		w.record.serial = be32_put(r->serial);
		put_range(&w.record, &r->range);
		break;
	case COHERENCE_FIN:
		w.record.term = be32_put(r->fin.term);
		w.record.seq = be32_put(r->fin.seq);
		put_range(&w.record, &r->fin.range);
		break;
	case COHERENCE_EVICT:
		put_range(&w.record, &r->range);
		break;
	case COHERENCE_CLEAN:
		w.record.term = be32_put(r->term);
		break;
	}
	memcpy(out, &w, sizeof(w));
	return r->kind == COHERENCE_INVAL ? COHERENCE_INVAL_BYTES
					  : COHERENCE_RECORD_BYTES;
}

/* ---- back ---------------------------------------------------------------- */

static bool is_range(const struct coh_range *r)
{
	return r->count && r->count <= COH_REGION_PAGES_MAX &&
	       r->page + r->count > r->page;
}

static bool is_region(const struct coh_range *r)
{
	return is_range(r) && !(r->count & (r->count - 1)) &&
	       !(r->page & (r->count - 1));
}

static bool get_inval(const struct coherence_inval *w, struct coh_inval *v)
{
	v->to = (enum coh_right)w->record.to;
	v->target = be64_get(w->record.target);
	for (unsigned i = 0; i < COH_LANES_MAX; i++)
		v->granted[i] = be32_get(w->granted[i]);
	return is_region(&v->range) && w->record.to <= COH_READ &&
	       coh_range_has(&v->range, v->target);
}

int coh_record_parse(const uint8_t *bytes, uint32_t len_bytes,
		     struct coh_record *out)
{
	struct coherence_inval w = {0};
	struct coh_range range;
	bool good = false;

	if (len_bytes != COHERENCE_RECORD_BYTES &&
	    len_bytes != COHERENCE_INVAL_BYTES)
		return -EINVAL;
	memcpy(&w, bytes, len_bytes);
	if (w.record.version != COHERENCE_VERSION ||
	    (w.record.kind == COHERENCE_INVAL) !=
		    (len_bytes == COHERENCE_INVAL_BYTES))
		return -EINVAL;
	range = (struct coh_range){be64_get(w.record.page),
				   be32_get(w.record.count)};
	*out = (struct coh_record){
		.kind = w.record.kind,
		.why = w.record.to,
		.lane = w.record.lane,
		.serial = be32_get(w.record.serial),
		.range = range,
		.inval = {.range = range,
			  .term = be32_get(w.record.term),
			  .seq = be32_get(w.record.seq)},
		.fin = {range, be32_get(w.record.term), be32_get(w.record.seq)},
		.term = be32_get(w.record.term)};
	switch (w.record.kind) {
	case COHERENCE_INVAL:
		good = get_inval(&w, &out->inval);
		break;
	case COHERENCE_LOST:
		good = is_range(&range) && w.record.lane < COHERENCE_LANES &&
		       w.record.to >= COHERENCE_WHY_LOST &&
		       w.record.to <= COHERENCE_WHY_NODE;
		break;
	case COHERENCE_FIN:
		good = is_region(&range);
		break;
	case COHERENCE_EVICT:
		good = is_range(&range);
		break;
	case COHERENCE_CLEAN:
		good = true;
		break;
	default:
		break;
	}
	return good ? 0 : -EINVAL;
}
