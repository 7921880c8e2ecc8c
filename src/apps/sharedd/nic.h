/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine's connections to the switch: lanes, each of which carries one get
 * at a time, and the talk for everything else; and the buffers behind them.
 * What comes back is told by number. One thread.
 */
#ifndef AQ_SHD_NIC_H
#define AQ_SHD_NIC_H

#include "coherence/record.h"
#include "lead.h"

enum {
	SHD_GIVES = 16,
	SHD_RECVS = 64,
	SHD_SAYS = 256,
};

enum shd_done_kind {
	SHD_DONE_LANE,
	SHD_DONE_GIVE,
	SHD_DONE_FIN,
	SHD_DONE_EVICT,
	SHD_DONE_CLEAN,
	SHD_DONE_RECORD,
	SHD_DONE_BROKEN, /* a connection has failed */
};

struct shd_done {
	enum shd_done_kind kind;
	uint32_t index;		  /* of lane, give or leave */
	struct coh_record record; /* RECORD */
};

struct shd_nic {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	uint8_t *buffer;
	struct ibv_mr *mr;
	struct ibv_qp *talk, *lane[COHERENCE_LANES];
	struct shd_place place;
	uint32_t turn; /* of the connections; completions name it */
	uint32_t says;
	uint32_t fins; /* since one had a completion */
	bool is_connected;
	bool is_broken;
	uint64_t give_page[SHD_GIVES]; /* 0: the slot is free */
	uint64_t strange;	       /* records that are none */
};

/* -errno with words. */
int shd_nic_open(struct shd_nic *n) MUST_CHECK;
void shd_nic_close(struct shd_nic *n);

/* New queue pairs, in place of any others. */
int shd_nic_renew(struct shd_nic *n, struct shd_ends *ends) MUST_CHECK;
/* To these ends of the switch; `ends` as shd_nic_renew gave them. */
int shd_nic_connect(struct shd_nic *n, const struct shd_place *place,
		    const struct shd_ends *ends) MUST_CHECK;
/* The switch is gone: nothing of these connections comes any more. */
void shd_nic_cut(struct shd_nic *n);

void shd_nic_get(struct shd_nic *n, const struct coh_get *get);
/* A place for the bytes of a page that is given back; NULL: none is free. */
void *shd_nic_give_room(struct shd_nic *n, uint32_t *slot);
void shd_nic_give(struct shd_nic *n, uint32_t slot, uint64_t page);
void shd_nic_say(struct shd_nic *n, const struct coh_record *r,
		 enum shd_done_kind kind, uint32_t index);
/* The bytes that a lane's get has brought. */
const void *shd_nic_landing(const struct shd_nic *n, uint32_t lane);
/* The page of a give-back that is complete; its slot is free again. */
uint64_t shd_nic_given(struct shd_nic *n, uint32_t slot);

/* The next thing that has happened; false: nothing. */
bool shd_nic_next(struct shd_nic *n, struct shd_done *out);
/* Makes channel->fd readable when something happens from now on: look once more
 * before you sleep. */
void shd_nic_arm(struct shd_nic *n);
/* After channel->fd was readable. */
void shd_nic_disarm(struct shd_nic *n);

#endif
