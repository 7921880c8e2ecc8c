/* SPDX-License-Identifier: Apache-2.0 */
/* Every limit of the NIC in one place; nic_query_device reports them. */
#ifndef AQ_NIC_LIMITS_H
#define AQ_NIC_LIMITS_H

enum {
	NIC_QP_MAX = 1 << 14,
	NIC_QP_WR_MAX = 16384,
	NIC_SGE_MAX = 32,
	NIC_INLINE_MAX = 512,
	NIC_RECV_IMMS = 2,   /* places for an immediate value in a receive */
	NIC_RECV_PLACES = 4, /* pieces of a call that chain_recv_call takes */
	NIC_CQ_MAX = 1 << 16,
	NIC_CQE_MAX = 1 << 22,
	NIC_SRQ_MAX = 1 << 14,
	NIC_SRQ_WR_MAX = 1 << 15,
	NIC_MR_MAX = 1 << 18,
	NIC_MW_MAX = 1 << 18,
	NIC_PD_MAX = 1 << 15,
	NIC_AH_MAX = 1 << 16,
	NIC_RD_ATOMIC_MAX = 128,
	NIC_UD_PATH_MAX = 256,
	NIC_DM_BYTES_MAX = 4 << 20,
	NIC_MSG_BYTES_MAX = 1 << 30,
	/* Packets of requests that are not acknowledged. */
	NIC_WINDOW_PACKETS = 512,
	/* An acknowledgement is asked for at least this often. */
	NIC_ACK_EVERY_PACKETS = 64,
	/* Messages that one acknowledgement may be held back for. */
	NIC_ACK_HOLD_MAX = 64,
	/* Packets that came too early before the NAK is repeated. */
	NIC_NAK_EVERY_PACKETS = 32,
	/* A READ over a lossy network is requested in pieces of this many
	 * packets, so that its answer stays within the window. */
	NIC_READ_CHUNK_PACKETS = 16,
	/* Packet numbers in use by one queue pair; far below half a circle. */
	NIC_WINDOW_PSNS = 1 << 22, /* the longest message has as many */
	/* What one queue pair may send before the next has its turn, and all of
	 * one domain before the next domain has. */
	NIC_TURN_PACKETS = 32,
	/* The same while another domain is there, which is so for some flushes
	 * after it had something to send. */
	NIC_TURN_CROWDED = 32,
	NIC_TURN_GREEDY = 4, /* of a domain that did more than another lately */
	NIC_TURN_MEMORY = 128, /* flushes: what was before counts little */
	NIC_CROWD_FLUSHES = 1000,
	NIC_CROWD_ROUNDS = 2, /* of turns within a flush, for chains */
	NIC_TURN_STEPS = 2,   /* of a chain: as much as a packet */
	NIC_TURN_MESSAGE = 4, /* that a processor works on */
	NIC_USED_PART = 16,   /* what nic_pd.used counts in */
	NIC_TURN_SHIFT = 10,  /* a packet counts once more for each KiB of it */
	/* The same for requests of a managed queue ... */
	NIC_CHAIN_TURN = 32,
	/* ... and how often chains have their turn within one flush. */
	NIC_CHAIN_ROUNDS = 8,
	NIC_CHAIN_BLOCKS_MAX = 16384,
	NIC_CHAIN_STEPS = 4096, /* per event that no chain caused, by default */
	NIC_CHAIN_STEPS_MAX = 1 << 20,
	/* Of walks, before frames are looked at again, and the same while
	 * another domain is there. */
	NIC_WALK_TURN = 64,
	NIC_WALK_CROWDED = 32,
	NIC_TURN_ITERATIONS = 4, /* as much as a packet */
	NIC_WALK_STAYS = 255,	 /* hops of one that no switch carries on */
	NIC_HOPS_MAX = 1024, /* walks of one queue pair that a switch brings */
	NIC_WALK_PAD_MAX = 4032, /* the largest MTU without the overhead */
	NIC_PLACE_COUNT_MAX = 1 << 16,
	NIC_PLACE_SHIFT_MIN = 6,
	NIC_PLACE_SHIFT_MAX = 62,
	NIC_READ_AHEAD_BYTES = 1024, /* of each, prefetched before the copy */
	/* From here on one copy by the system beats two through a ring, also
	 * when the peer polls; where cores share a cache, only from 64 KiB on
	 * (docs/decisions/0131-pages-go-by-the-ring.md). */
	NIC_REACH_LARGE = 8192,
	NIC_REACH_MAX = 1 << 20, /* bytes copied in one go, lock held */
	NIC_DIRECT_AHEAD = 8,	 /* prefetched, on the direct port */
	NIC_GUESS_SOURCES = 64,
	NIC_REPEATS_MAX = 8, /* immediate; then only when a timer is due */
	NIC_MTU_MIN = 256,
};

/*
 * How long the NIC waits for a peer that lives but does not run before retries
 * count. An adapter would serve a stopped process for ever; here a program that
 * waits for a process that is never continued gets an error in the end.
 */
#define NIC_STALL_NS 300000000000ull

enum {
	/* Where only answers are known of the peer, a timeout counts after this
	 * many times its length, the most that IBA 9.7.6.1.3 allows, because
	 * the peer may be a program on a busy machine. */
	NIC_TIMEOUT_STRETCH = 4,
};

#endif
