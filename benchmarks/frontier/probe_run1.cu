// dev kernel: persistent stream-K, TMA ring (one stage per warp), 16 x TN thread tile, A transposed
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
#ifndef WA
#define WA 4
#endif
#ifndef WB
#define WB 4
#endif
#ifndef LDP
#define LDP 1
#endif
#ifndef VOT
#define VOT 1
#endif
#ifndef PTR
#define PTR 0
#endif
#ifndef ST
#define ST 8
#endif
constexpr int TM=16, NT=256, NW=8, BM=256, HB=8*TN, BN=2*HB;
constexpr bool TALL = TN==12;
constexpr int SA1=BM*BK, SBH=HB*BK;                      // floats of A's first half, of half of B
constexpr int XO=SA1*4, B0O=(TALL?2*SA1:SA1)*4, B1O=TALL?XO:B0O+SBH*4;   // tall: second half of A lies where wide has that of B
constexpr int DATA=B0O+(TALL?1:2)*SBH*4, STAGE=(DATA+16+127)/128*128, FULL=DATA, EMPTY=DATA+8;
typedef uint32_t u32;
__device__ __forceinline__ void binit(u32 b,int c){ asm volatile("mbarrier.init.shared::cta.b64 [%0],%1;"::"r"(b),"r"(c):"memory"); }
__device__ __forceinline__ bool peek(u32 b,u32 ph){ u32 r; asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p,[%1],%2;\nselp.u32 %0,1,0,p;\n}":"=r"(r):"r"(b),"r"(ph):"memory"); return r; }
#if VOT
__device__ __forceinline__ bool every(bool x){ return __all_sync(~0u,x); }
#else
__device__ __forceinline__ bool every(bool x){ return x; }
#endif
__device__ __forceinline__ void lds4(float*v,u32 a){ asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3},[%4];":"=f"(v[0]),"=f"(v[1]),"=f"(v[2]),"=f"(v[3]):"r"(a)); }
__device__ __forceinline__ void lds2(float*v,u32 a){ asm volatile("ld.shared.v2.f32 {%0,%1},[%2];":"=f"(v[0]),"=f"(v[1]):"r"(a)); }
template<int W> __device__ __forceinline__ void ldq(float*v,u32 a){ if constexpr(W==4) lds4(v,a); else { lds2(v,a); lds2(v+2,a+8); } }
extern "C" __global__ void __launch_bounds__(NT,1) g(int M,int N,int K,float alpha,const void*tA,const void*tB,float beta,float*__restrict__ C,float*__restrict__ W,unsigned*__restrict__ F,unsigned epoch){
  extern __shared__ __align__(1024) float sm[];
    const int t=threadIdx.x,l=t%32; const unsigned w=__shfl_sync(~0u,t/32,0);
  auto uni=[&](u32 x){ return __shfl_sync(~0u,x,0); }; auto keep=[&](u32 x){ return __shfl_sync(~0u,x,l); };
  const u32 ring=uni((u32)__cvta_generic_to_shared(sm));
  const int ly=(l>>1)&3, lx=(l&1)|((l>>3)<<1);
  const int KT=(K+BK-1)/BK, KP=KT*BK;
  // tiles
  const int full=N/BN, rem=N-full*BN; const int nx=full+(TALL?rem>HB:rem>0), ny=(M+BM-1)/BM, nwide=nx*ny;
  const int ntall=(TALL&&rem>0&&rem<=HB)?(M+2*BM-1)/(2*BM):0; const int NTL=nwide+ntall;
  if(t==0){
    #pragma unroll
    for(int i=0;i<ST;i++){ binit(ring+i*STAGE+FULL,1); binit(ring+i*STAGE+EMPTY,NW); }
    asm volatile("fence.mbarrier_init.release.cluster;":::"memory"); asm volatile("fence.proxy.async.shared::cta;":::"memory");
  }
  __syncthreads();
  const int bid=gridDim.x-1-blockIdx.x; const int share=NTL*KT/(int)gridDim.x, extra=NTL*KT%(int)gridDim.x;
  auto first=[&](int b){ return b*share+min(b,extra); };
  const int u0=__shfl_sync(~0u,first(bid),0), u1=__shfl_sync(~0u,first(bid+1),0); const int NU=u1-u0;
  // producer: warp w owns stage w
  int pu=w, ptile=(u0+pu)/KT, pk=(u0+pu)%KT*BK, px,py; bool ptall;
  auto place=[&](int tile,int&x,int&y)->bool{ if(tile<nwide){ y=tile/nx*BM; x=tile%nx*BN; return false; } y=(tile-nwide)*2*BM; x=nx*BN; return true; };
  ptall=place(ptile,px,py);
  const u32 mine=ring+w*STAGE, turn=uni(ring+((w-LA)&(ST-1))*STAGE), last=uni(ring+(ST-1)*STAGE);
  auto issue=[&](){
    if(!TALL||!ptall){
    asm volatile("{\n.reg .pred p;\nelect.sync _|p,0xffffffff;\n"
      "@p mbarrier.arrive.expect_tx.shared::cta.b64 _,[%0],%1;\n"
      "@p cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%2],[%3,{%4,%5}],[%0];\n"
      "@p cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%6],[%7,{%8,%5}],[%0];\n"
      "@p cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%9],[%7,{%10,%5}],[%0];\n}"
      ::"r"(mine+FULL),"r"((BM*BK+2*SBH)*4),"r"(mine),"l"(tA),"r"(py),"r"(pk),"r"(mine+B0O),"l"(tB),"r"(px),"r"(mine+B1O),"r"(px+HB):"memory");
    } else {
    asm volatile("{\n.reg .pred p;\nelect.sync _|p,0xffffffff;\n"
      "@p mbarrier.arrive.expect_tx.shared::cta.b64 _,[%0],%1;\n"
      "@p cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%2],[%3,{%4,%5}],[%0];\n"
      "@p cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%9],[%3,{%10,%5}],[%0];\n"
      "@p cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%6],[%7,{%8,%5}],[%0];\n}"
      ::"r"(mine+FULL),"r"((2*BM*BK+SBH)*4),"r"(mine),"l"(tA),"r"(py),"r"(pk),"r"(mine+B0O),"l"(tB),"r"(px),"r"(mine+XO),"r"(py+BM):"memory");
    } };
  auto advance=[&](){ pu+=ST; pk+=ST*BK; if(pk>=KP){ do{ pk-=KP; ptile++; }while(pk>=KP); ptall=place(ptile,px,py); } };
  u32 pparity=1;
  if(w<LA){ if(pu<=NU) issue(); advance(); pparity=0; }
  u32 cur=ring, nxt, parity=0;
  float acc[TM][TN];
  #pragma unroll 1
  for(int u=u0;u<u1;){
    const int tile=u/KT, k0=u%KT; int left=__shfl_sync(~0u,min(KT-k0,u1-u),0); int x,y; const bool tall=place(tile,x,y);
    int wr,wc; u32 aofs,bofs;
    if(!tall){ wr=w/2; wc=w%2; aofs=(wr*64+ly*4)*4; } else { wr=w; wc=0; aofs=((w/4)*BM*BK+(w%4)*64+ly*4)*4; }
    bofs=(wc?B1O:B0O)+lx*16; aofs=keep(aofs); bofs=keep(bofs);
    #pragma unroll
    for(int i=0;i<TM;i++)
    #pragma unroll
    for(int j=0;j<TN;j++) acc[i][j]=0.f;
    while(!every(peek(cur+FULL,parity)));
    float a[(LDP&&ORD!=3)?1:2][TM],b[(ORD==3&&LDP)?1:2][TN];
    #pragma unroll
    for(int i=0;i<TN/4;i++) ldq<WB>(&b[0][i*4],cur+bofs+i*128);
    #pragma unroll
    for(int i=0;i<TM/4;i++) ldq<WA>(&a[0][i*4],cur+aofs+i*64);
    u=u+left;
    #pragma unroll 1
    do{
      const bool wrap=cur==last; nxt=wrap?ring:cur+STAGE; parity^=wrap;
      bool ok=true;
      const u32 A0=cur+aofs,B0=cur+bofs,A1=nxt+aofs,B1=nxt+bofs;
      #pragma unroll
      for(int d=0;d<BK;d++){
        const int q=d&1;
        if(d==ISS && __builtin_expect(cur==turn,0)){ if(pu<=NU){ while(!every(peek(mine+EMPTY,pparity))); issue(); } pparity^=1; advance(); }
        if(d==PEEK) ok=peek(nxt+FULL,parity);
        if(d==BK-1 && __builtin_expect(!every(ok),0)) while(!every(peek(nxt+FULL,parity)));
        const u32 an=d==BK-1?A1:A0+(d+1)*BM*4, bn=d==BK-1?B1:B0+(d+1)*HB*4;
#if LDP==0
        #pragma unroll
        for(int i=0;i<TN/4;i++) ldq<WB>(&b[q^1][i*4],bn+i*128);
        #pragma unroll
        for(int i=0;i<TM/4;i++) ldq<WA>(&a[q^1][i*4],an+i*64);
#endif
#if ORD==3
        #pragma unroll
        for(int j=0;j<TN/4;j++){
          if(LDP==2&&j==0){
            #pragma unroll
            for(int i=0;i<TM/4;i++) ldq<WA>(&a[q^1][i*4],an+i*64); }
          #pragma unroll
          for(int n=j*4;n<j*4+4;n++)
          #pragma unroll
          for(int mm=0;mm<TM;mm++){ const int m=(n&1)?TM-1-mm:mm; acc[m][n]+=a[q][m]*b[LDP?0:q][n]; }
          if(LDP){ ldq<WB>(&b[0][j*4],bn+j*128);
            if(LDP==1){ ldq<WA>(&a[q^1][j*4],an+j*64); if(j==TN/4-1){
              #pragma unroll
              for(int i=TN/4;i<TM/4;i++) ldq<WA>(&a[q^1][i*4],an+i*64); } } }
        }
#else
        #pragma unroll
        for(int i=0;i<TM/4;i++){
#if LDP==2
          if(i==0){
            #pragma unroll
            for(int j=0;j<TN/4;j++) ldq<WB>(&b[q^1][j*4],bn+j*128); }
#endif
          #pragma unroll
          for(int m=i*4;m<i*4+4;m++)
          #pragma unroll
          for(int n=0;n<TN;n++){
#if ORD==0
            const int c=n;
#elif ORD==1
            const int c=(m&1)?TN-1-n:n;
#elif ORD==2
            const int c=((m+d)&1)?TN-1-n:n;
#endif
            acc[m][c]+=a[LDP?0:q][m]*b[q][c]; }
#if LDP==1
          ldq<WA>(&a[0][i*4],an+i*64);
          if(i<TN/4) ldq<WB>(&b[q^1][i*4],bn+i*128);
#elif LDP==2
          ldq<WA>(&a[0][i*4],an+i*64);
#endif
        }
#endif
      }
      __syncwarp();
      asm volatile("{\n.reg .pred p;\nsetp.eq.u32 p,%1,0;\n@p mbarrier.arrive.shared::cta.b64 _,[%0];\n}"::"r"(cur+EMPTY),"r"(l):"memory");
      cur=nxt;
    }while(--left);
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
    if(u<(tile+1)*KT){
#if RAWQ==0
      #pragma unroll
      for(int i=0;i<TM;i++)
      #pragma unroll
      for(int j=0;j<TN;j++) acc[i][j]*=alpha;
      al=1.f;
#endif
      for(int e=u,bx=bid+1;e<(tile+1)*KT;bx++){
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
        e=__shfl_sync(~0u,first(bx+1),0);
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
