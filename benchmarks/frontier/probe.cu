// dev kernel 2: data-parallel waves, then stream-K; TMA ring, one stage per warp; 16 x TN thread tile; A transposed, late rows inside
#include <cstdint>
#ifndef TN
#define TN 8
#endif
#ifndef BK
#define BK 14
#endif
#ifndef PEEK
#define PEEK 11
#endif
#ifndef ISS
#define ISS 2
#endif
#ifndef LA
#define LA 4
#endif
#ifndef ORD
#define ORD 1
#endif
#ifndef RAWQ
#define RAWQ 1
#endif
#ifndef LDP
#define LDP 2
#endif
#ifndef SW
#define SW 0
#endif
#ifndef ABF
#define ABF 0   // A before B in the loads of a k-step
#endif
#ifndef REL
#define REL 0   // release: 0 at the end, 1 in the last k-step
#endif
#ifndef QO
#define QO 0    // order of the row quads
#endif
#ifndef OV
#define OV 0
#endif
#ifndef MRG
#define MRG 0
#endif
#ifndef PAR
#define PAR 0
#endif
constexpr int ST=8, TM=16, NT=256, NW=8, BM=256, HB=8*TN, BN=2*HB;
constexpr bool TALL = TN==12;
constexpr int SA1=BM*BK, SBH=HB*BK;
constexpr int XO=SA1*4, B0O=(TALL?2*SA1:SA1)*4, B1O=TALL?XO:B0O+SBH*4;
constexpr int DATA=B0O+(TALL?1:2)*SBH*4, STAGE=(DATA+16+127)/128*128, FULL=DATA, EMPTY=DATA+8;
constexpr int SCR=(ST*STAGE+1023)/1024*1024, SCRB=SCR+NW*4096;   // scratch of the late transposition and its barriers
typedef uint32_t u32;
struct __align__(64) Map { char b[128]; };
__device__ __forceinline__ void binit(u32 b,int c){ asm volatile("mbarrier.init.shared::cta.b64 [%0],%1;"::"r"(b),"r"(c):"memory"); }
__device__ __forceinline__ bool peek(u32 b,u32 ph){ u32 r; asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p,[%1],%2;\nselp.u32 %0,1,0,p;\n}":"=r"(r):"r"(b),"r"(ph):"memory"); return r; }
__device__ __forceinline__ bool every(bool x){ return __all_sync(~0u,x); }
__device__ __forceinline__ void lds4(float*v,u32 a){ asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3},[%4];":"=f"(v[0]),"=f"(v[1]),"=f"(v[2]),"=f"(v[3]):"r"(a)); }
extern "C" __global__ void __launch_bounds__(NT,1) g(int M,int N,int K,float alpha,const __grid_constant__ Map mA,const __grid_constant__ Map mB,float beta,float*__restrict__ C,float*__restrict__ W,unsigned*__restrict__ F,unsigned epoch
#if OV
  ,const __grid_constant__ Map mR,float*__restrict__ AT
#endif
){
  extern __shared__ __align__(1024) float sm[];
  const int t=threadIdx.x,l=t%32; const unsigned w=__shfl_sync(~0u,t/32,0);
  auto uni=[&](u32 x){ return __shfl_sync(~0u,x,0); }; auto keep=[&](u32 x){ return __shfl_sync(~0u,x,l); };
  const u32 ring=uni((u32)__cvta_generic_to_shared(sm));
  const int ly=(l>>1)&3, lx=(l&1)|((l>>3)<<1);
  const int KT=(K+BK-1)/BK, KP=KT*BK, G=gridDim.x;
  const int full=N/BN, rem=N-full*BN; const int nx=full+(TALL?rem>HB:rem>0), ny=(M+BM-1)/BM, nwide=nx*ny;
  const int ntall=(TALL&&rem>0&&rem<=HB)?(M+2*BM-1)/(2*BM):0; const int NTL=nwide+ntall;
  if(t==0){
    #pragma unroll
    for(int i=0;i<ST;i++){ binit(ring+i*STAGE+FULL,1); binit(ring+i*STAGE+EMPTY,NW);
#if OV
      binit(ring+SCRB+i*8,1);
#endif
    }
    asm volatile("fence.mbarrier_init.release.cluster;":::"memory"); asm volatile("fence.proxy.async.shared::cta;":::"memory");
  }
  __syncthreads();
  // units: `waves` whole tiles bid, bid+G, ..., then a share of the units of the tiles that are left
  const int bid=G-1-blockIdx.x; const int waves=NTL/G, sk0=waves*G, sku=(NTL-sk0)*KT; const int share=sku/G, extra=sku%G;
  auto first=[&](int b){ return b*share+(b<extra?b:extra); };
  const int s0=uni(first(bid)), ns=uni(first(bid+1))-s0; const int NU=waves*KT+ns;
  auto place=[&](int tile,int&x,int&y)->bool{ if(!TALL||tile<nwide){ y=tile/nx*BM; x=tile%nx*BN; return false; } y=(tile-nwide)*2*BM; x=nx*BN; return true; };
  auto locate=[&](int n,int&tile,int&k){ if(n<waves*KT){ tile=bid+n/KT*G; k=n%KT; } else { const int v=s0+n-waves*KT; tile=sk0+v/KT; k=v%KT; } };
  // producer: warp w owns stage w
  int pu=w, ptile, pk, px, py, px2; bool ptall; u32 pbytes; const Map*pm2;
  auto settle=[&](){ int kk; locate(pu,ptile,kk); pk=kk*BK; ptall=place(ptile,px,py);
    px2=(TALL&&ptall)?py+BM:px+HB; pm2=(TALL&&ptall)?&mA:&mB; pbytes=(TALL&&ptall)?(2*SA1+SBH)*4:(SA1+2*SBH)*4; };
  settle();
  const u32 mine=uni(ring+w*STAGE), turn=uni(ring+((w-LA)&(ST-1))*STAGE), last=uni(ring+(ST-1)*STAGE);
#if OV
  // late rows: those that no tile of the first wave needs; 32 x 32 blocks, one a warp at a time
  const int r1=uni((waves==0||(K&3)||(TALL&&G>nwide))?M:min(M,((G-1)/nx+1)*BM)); const bool none=r1==M;
  const int bk=(K+31)/32, nb=uni(bk*((M-r1+31)/32)), slices=uni((nb+G*NW-1)/(G*NW)); int slice=0; u32 ready=uni(none);
  const u32 scr=uni(ring+SCR+w*4096), sbar=uni(ring+SCRB+w*8); const int ldt=(M+3)/4*4;
  auto fetch=[&](){ const int b=(slice*G+bid)*NW+w; if(b<nb)
    asm volatile("{\n.reg .pred p;\nelect.sync _|p,0xffffffff;\n@p mbarrier.arrive.expect_tx.shared::cta.b64 _,[%0],4096;\n"
      "@p cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%1],[%2,{%3,%4}],[%0];\n}"
      ::"r"(sbar),"r"(scr),"l"(&mR),"r"(b%bk*32),"r"(r1+b/bk*32):"memory"); };
  auto flush=[&](){ const int b=(slice*G+bid)*NW+w; if(b<nb){ while(!every(peek(sbar,slice&1)));
      const int m=r1+b/bk*32+l, k0_=b%bk*32; float*to=AT+(size_t)k0_*ldt+m; const u32 from=scr+l*128;
      #pragma unroll 4
      for(int k=0;k<32;k++){ float v; asm volatile("ld.shared.f32 %0,[%1];":"=f"(v):"r"(from+(((k/4)^(l&7))*16)+(k%4)*4):"memory");
        asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p,%2,0;\n@p st.global.f32 [%0],%1;\n}"::"l"(to),"f"(v),"r"((u32)(m<M&&k0_+k<K)):"memory"); to+=ldt; }
      __syncwarp(); asm volatile("fence.proxy.async;":::"memory"); }
    slice++; };
  auto finish=[&](){ while(slice<slices){ flush(); if(slice<slices) fetch(); }
    asm volatile("fence.proxy.async;":::"memory"); __threadfence(); __syncwarp(); asm volatile("{\n.reg .pred p;\nsetp.eq.u32 p,%1,0;\n@p red.release.gpu.global.add.u32 [%0],1;\n}"::"l"(F+1024),"r"(l):"memory"); };
  const int chunk_len=uni(KT/(2*slices+2)); if(nb){ fetch(); if(chunk_len<4) finish(); }
  u32 busy=uni(nb>0&&chunk_len>=4);
  auto await=[&](){ if(!ready){ unsigned v; do{ asm volatile("ld.acquire.gpu.global.u32 %0,[%1];":"=r"(v):"l"(F+1024):"memory"); }while(!every((int)(v-epoch*(unsigned)(G*NW))>=0)); asm volatile("fence.proxy.async;":::"memory"); ready=1; } };
#endif
#if OV
  if(pu>=KT&&pu<=NU) await();
#endif
  auto issue=[&](){
    asm volatile("{\n.reg .pred p;\nelect.sync _|p,0xffffffff;\n"
      "@p mbarrier.arrive.expect_tx.shared::cta.b64 _,[%0],%1;\n"
      "@p cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%2],[%3,{%4,%5}],[%0];\n"
      "@p cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%6],[%7,{%8,%5}],[%0];\n"
      "@p cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%9],[%10,{%11,%5}],[%0];\n}"
      ::"r"(mine+FULL),"r"(pbytes),"r"(mine),"l"(&mA),"r"(py),"r"(pk),"r"(mine+B0O),"l"(&mB),"r"(px),"r"(mine+B1O),"l"(pm2),"r"(px2):"memory");
    };
  auto advance=[&](){ pu+=ST; pk+=ST*BK; if(__builtin_expect(pk>=KP,0)){ settle();
#if OV
    if(pu>=KT&&pu<=NU) await();
#endif
    } };
  u32 pparity=1;
  if(w<LA){ if(pu<=NU) issue(); advance(); pparity=0; }
  u32 cur=ring, nxt, parity=0;
  float acc[TM][TN];
  #pragma unroll 1
  for(int n=0;n<NU;){
    int tile,k0,x,y; locate(n,tile,k0); const int kn=uni(min(KT-k0,NU-n)); const bool tall=place(tile,x,y);
    int wr,wc; u32 aofs,bofs;
    if(!TALL||!tall){ wr=w/2; wc=w%2; aofs=(wr*64+ly*4)*4; } else { wr=w; wc=0; aofs=((w/4)*BM*BK+(w%4)*64+ly*4)*4; }
    bofs=(wc?B1O:B0O)+lx*16; aofs=keep(aofs); bofs=keep(bofs);
    #pragma unroll
    for(int i=0;i<TM;i++)
    #pragma unroll
    for(int j=0;j<TN;j++) acc[i][j]=0.f;
    while(!every(peek(cur+FULL,parity)));
    float a[(LDP&&ORD!=3)?1:2][TM],b[(ORD==3&&LDP)?1:2][TN];
    #pragma unroll
    for(int i=0;i<TN/4;i++) lds4(&b[0][i*4],cur+bofs+i*128);
    #pragma unroll
    for(int i=0;i<TM/4;i++) lds4(&a[0][i*4],cur+aofs+i*64);
    n+=kn;
    int rest=kn;
#if OV
    #pragma unroll 1
    while(rest){ int left=rest;
      if(busy){ flush(); if(slice<slices){ fetch(); left=uni(min(rest,chunk_len)); } else { busy=0; finish(); } }
      rest-=left;
#else
    { int left=rest;
#endif
    #pragma unroll 1
    do{
#if PAR==0
      const bool wrap=cur==last; nxt=wrap?ring:cur+STAGE; parity^=wrap;
#else
      nxt=cur+STAGE; if(cur==last){ nxt=ring; parity^=1; }
#endif
      bool ok=true;
      const u32 A0=cur+aofs,B0=cur+bofs,A1=nxt+aofs,B1=nxt+bofs;
      #pragma unroll
      for(int d=0;d<BK;d++){
        const int q=d&1;
#if MRG
        if(d==PEEK) ok=peek(nxt+FULL,parity);
        if(d==BK-1 && __builtin_expect(!every(ok&&cur!=turn),0)){
          if(cur==turn){ if(pu<=NU){ while(!every(peek(mine+EMPTY,pparity))); issue(); } pparity^=1; advance(); }
          while(!every(peek(nxt+FULL,parity))); }
#else
        if(d==ISS && __builtin_expect(cur==turn,0)){ if(pu<=NU){ while(!every(peek(mine+EMPTY,pparity))); issue(); } pparity^=1; advance(); }
        if(d==PEEK) ok=peek(nxt+FULL,parity);
        if(d==BK-1 && __builtin_expect(!every(ok),0)) while(!every(peek(nxt+FULL,parity)));
#endif
        const u32 an=d==BK-1?A1:A0+(d+1)*BM*4, bn=d==BK-1?B1:B0+(d+1)*HB*4;
        auto la=[&](int i){ lds4(&a[(LDP&&ORD!=3)?0:q^1][i*4],an+i*64); };
        auto lb=[&](int j){ lds4(&b[(ORD==3&&LDP)?0:q^1][j*4],bn+j*128); };
#if LDP==0
#if ABF
        #pragma unroll
        for(int i=0;i<TM/4;i++) la(i);
#endif
        #pragma unroll
        for(int i=0;i<TN/4;i++) lb(i);
#if !ABF
        #pragma unroll
        for(int i=0;i<TM/4;i++) la(i);
#endif
#if SW==1
        __syncwarp();
#elif SW==2
        if(d&1) __syncwarp();
#endif
#endif
#if ORD==3
        #pragma unroll
        for(int j=0;j<TN/4;j++){
          if(LDP==2&&j==0){
            #pragma unroll
            for(int i=0;i<TM/4;i++) la(i); }
          #pragma unroll
          for(int n_=j*4;n_<j*4+4;n_++)
          #pragma unroll
          for(int mm=0;mm<TM;mm++){ const int m=(n_&1)?TM-1-mm:mm; acc[m][n_]+=a[q][m]*b[LDP?0:q][n_]; }
          if(LDP){ lb(j); if(LDP==1){ la(j); if(j==TN/4-1){
            #pragma unroll
            for(int i=TN/4;i<TM/4;i++) la(i); } } }
        }
#elif ORD==4
        // column quads outermost, rows serpentine inside
        #pragma unroll
        for(int j=0;j<TN/4;j++)
        #pragma unroll
        for(int mm=0;mm<TM;mm++)
        #pragma unroll
        for(int n_=0;n_<4;n_++){ const int m=(j&1)?TM-1-mm:mm; const int c=j*4+((mm&1)?3-n_:n_); acc[m][c]+=a[LDP?0:q][m]*b[q][c]; }
#else
        #pragma unroll
        for(int i_=0;i_<TM/4;i_++){
          constexpr int P[4][4]={{0,1,2,3},{3,2,1,0},{0,2,1,3},{1,0,3,2}}; const int i=P[QO==4?(d&1):QO][i_];
#if LDP==2
          if(i_==0){
            #pragma unroll
            for(int j=0;j<TN/4;j++) lb(j); }
#elif LDP==3
          if(i_==1){
            #pragma unroll
            for(int j=0;j<TN/4;j++) lb(j); }
#endif
          #pragma unroll
          for(int mm=0;mm<4;mm++)
          #pragma unroll
          for(int n_=0;n_<TN;n_++){
            const int m=i*4+mm; const int par=i_*4+mm;
#if ORD==0
            const int c=n_;
#elif ORD==1
            const int c=(par&1)?TN-1-n_:n_;
#elif ORD==2
            const int c=((par+d)&1)?TN-1-n_:n_;
#elif ORD==5
            const int p=n_/2; const int c_=(par&1)?TN-1-n_:n_; const int c=c_^0*p;
#endif
            acc[m][c]+=a[LDP?0:q][m]*b[q][c]; }
#if LDP==1
          la(i); if(i_<TN/4) lb(i_);
#elif LDP==2||LDP==3
          la(i);
#endif
        }
#endif
#if REL==1
        if(d==BK-1){ __syncwarp(); asm volatile("{\n.reg .pred p;\nsetp.eq.u32 p,%1,0;\n@p mbarrier.arrive.shared::cta.b64 _,[%0];\n}"::"r"(cur+EMPTY),"r"(l):"memory"); }
#endif
      }
#if REL==0
      __syncwarp();
      asm volatile("{\n.reg .pred p;\nsetp.eq.u32 p,%1,0;\n@p mbarrier.arrive.shared::cta.b64 _,[%0];\n}"::"r"(cur+EMPTY),"r"(l):"memory");
#elif REL==2
      if(l==0) asm volatile("mbarrier.arrive.shared::cta.b64 _,[%0];"::"r"(cur+EMPTY):"memory");
#endif
      cur=nxt;
    }while(--left);
    }
    // epilogue
    if(k0>0){
      float4*p=(float4*)(W+(size_t)bid*(BM*BN))+t;
#if RAWQ==3
      #pragma unroll
      for(int i=0;i<TM/4;i++)
      #pragma unroll
      for(int j=0;j<TN;j++) __stcg(p+(i*TN+j)*NT,make_float4(acc[i*4+1][j],acc[i*4][j],acc[i*4+3][j],acc[i*4+2][j]));
#else
      #pragma unroll
      for(int i=0;i<TM;i++)
      #pragma unroll
      for(int j=0;j<TN/4;j++){ const float*v=&acc[i][j*4];
#if RAWQ==1
        __stcg(p+(i*(TN/4)+j)*NT,make_float4(v[1],v[0],v[3],v[2]));
#elif RAWQ==2
        __stcg(p+(i*(TN/4)+j)*NT,make_float4(v[3],v[2],v[1],v[0]));
#else
        __stcg(p+(i*(TN/4)+j)*NT,make_float4(alpha*v[1],alpha*v[0],alpha*v[3],alpha*v[2]));
#endif
      }
#endif
      __threadfence(); __syncthreads();
      if(t==0) asm volatile("st.release.gpu.global.u32 [%0],%1;"::"l"(F+bid),"r"(epoch):"memory");
      continue;
    }
    float al=alpha;
    if(kn<KT){
#if RAWQ==0
      #pragma unroll
      for(int i=0;i<TM;i++)
      #pragma unroll
      for(int j=0;j<TN;j++) acc[i][j]*=alpha;
      al=1.f;
#endif
      const int tend=(tile-sk0+1)*KT;
      for(int e=s0+ns,bx=bid+1;e<tend;bx++){
        unsigned v; do{ asm volatile("ld.acquire.gpu.global.u32 %0,[%1];":"=r"(v):"l"(F+bx):"memory"); }while(!every(v==epoch));
        const float4*p=(const float4*)(W+(size_t)bx*(BM*BN))+t;
#if RAWQ==3
        #pragma unroll
        for(int i=0;i<TM/4;i++)
        #pragma unroll
        for(int j=0;j<TN;j++){ float4 v=__ldcg(p+(i*TN+j)*NT); acc[i*4+1][j]+=v.x; acc[i*4][j]+=v.y; acc[i*4+3][j]+=v.z; acc[i*4+2][j]+=v.w; }
#else
        #pragma unroll
        for(int i=0;i<TM;i++)
        #pragma unroll
        for(int j=0;j<TN/4;j++){ float4 v=__ldcg(p+(i*(TN/4)+j)*NT); float*o=&acc[i][j*4];
#if RAWQ==2
          o[3]+=v.x;o[2]+=v.y;o[1]+=v.z;o[0]+=v.w;
#else
          o[1]+=v.x;o[0]+=v.y;o[3]+=v.z;o[2]+=v.w;
#endif
        }
#endif
        e=uni(first(bx+1));
      }
    }
    const int row=y+wr*64+ly*4, col=x+wc*HB+lx*4;
    float*Cp=C+(size_t)row*N+col;
    #pragma unroll
    for(int i=0;i<TM;i++)
    #pragma unroll
    for(int j=0;j<TN/4;j++){
      const int r=(i/4)*16+(i%4);
      if(row+r<M && col+j*32<N){
        float4*p=(float4*)(Cp+(size_t)r*N+j*32); const float*v=&acc[i][j*4];
        float4 o={al*v[0],al*v[1],al*v[2],al*v[3]};
        if(beta!=0.f){float4 c=*p;o.x+=beta*c.x;o.y+=beta*c.y;o.z+=beta*c.z;o.w+=beta*c.w;} *p=o; } }
  }
}
