/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the directory share. */
#ifndef AQ_COHERENCE_DIR_PRIV_H
#define AQ_COHERENCE_DIR_PRIV_H

#include "dir.h"

static inline uint16_t coh_bit(uint8_t machine)
{
	return (uint16_t)(1u << machine);
}

static inline uint8_t slot_machine(const struct coh_dir *d, uint16_t slot)
{
	return (uint8_t)(slot / d->lanes);
}

static inline bool is_idle(const struct coh_dir_entry *e)
{
	return e->state == COH_DIR_SHARED || e->state == COH_DIR_MODIFIED;
}

static inline bool is_busy(const struct coh_dir_entry *e)
{
	return e->state == COH_DIR_TO_SHARED ||
	       e->state == COH_DIR_TO_MODIFIED || e->state == COH_DIR_RECALL;
}

/* ---- dir.c --------------------------------------------------------------- */
struct coh_dir_action *coh_dir_push(struct coh_dir_out *out,
				    enum coh_dir_action_kind kind);
/* The slot's get meets this entry: it is granted, refused, waits for FINs or in
 * the queue. */
void coh_dir_start(struct coh_dir *d, struct coh_dir_entry *e, uint16_t slot,
		   struct coh_dir_out *out);
void coh_dir_invalidate(struct coh_dir *d, struct coh_dir_entry *e,
			uint16_t machines, enum coh_right to, uint64_t target,
			struct coh_dir_out *out);
/* One FIN less to wait for. */
void coh_dir_arrived(struct coh_dir *d, struct coh_dir_entry *e,
		     uint8_t machine, struct coh_dir_out *out);
/* The entry is idle or lost: serves its queue; gives it back if nobody has a
 * copy; recalls it if somebody waits for an entry. */
void coh_dir_settle(struct coh_dir *d, struct coh_dir_entry *e,
		    struct coh_dir_out *out);
void coh_dir_refuse(struct coh_dir *d, uint16_t slot,
		    enum coh_dir_action_kind kind, struct coh_dir_out *out);

/* ---- dir_member.c -------------------------------------------------------- */
/* Whether memory's bytes shall count for what an owner had at the page. */
bool coh_dir_goes_on(const struct coh_dir *d, uint64_t page);

/* ---- dir_pool.c ---------------------------------------------------------- */
struct coh_dir_entry *coh_dir_lookup(const struct coh_dir *d, uint64_t page);
/* Queues; `first` and `last` are an entry's or the directory's. */
void coh_queue_push(struct coh_dir *d, uint16_t *first, uint16_t *last,
		    uint16_t slot);
uint16_t coh_queue_pop(struct coh_dir *d, uint16_t *first, uint16_t *last);
void coh_queue_remove(struct coh_dir *d, uint16_t *first, uint16_t *last,
		      uint16_t slot);
/* The slot waits until there is an entry for it, or until gets may begin. */
void coh_room_wait(struct coh_dir *d, uint16_t slot);
void coh_room_leave(struct coh_dir *d, uint16_t slot);
void coh_room_serve(struct coh_dir *d, struct coh_dir_out *out);
/* All is lost: refuses who asks for what memory's bytes shall not count for. */
void coh_room_lost(struct coh_dir *d, struct coh_dir_out *out);
void coh_pool_init(struct coh_dir *d);
/* There is a free one. */
struct coh_dir_entry *coh_pool_take(struct coh_dir *d, uint64_t page,
				    uint8_t order);
/* Whether no entry has a page of that region. */
bool coh_pool_is_vacant(const struct coh_dir *d, uint64_t base, uint8_t order);
/* Whether a larger entry has the entry's pages, too. */
bool coh_pool_is_covered(const struct coh_dir *d,
			 const struct coh_dir_entry *e);
/* How large the entry of a region that is I becomes: other entries may have
 * parts of it. */
uint8_t coh_pool_order(const struct coh_dir *d, uint64_t page);
void coh_pool_free(struct coh_dir *d, struct coh_dir_entry *e);
bool coh_pool_is_wanted(const struct coh_dir *d);
void coh_pool_recall(struct coh_dir *d, struct coh_dir_entry *e,
		     struct coh_dir_out *out);
void coh_pool_make_room(struct coh_dir *d, struct coh_dir_out *out);

#endif
